"""What only many snapshots together show. A check is one row of :data:`CHECKS`: a fact a host, and a verdict on all.

The facts are taken as snapshots come in, so that no snapshot has to be kept.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

from gpufab_cli.audit import guids, layouts, outliers, power, twice
from gpufab_cli.audit.collect import Wants, short
from gpufab_cli.audit.finding import Check, FabricFinding, Fact
from gpufab_cli.fabric.hostlist import fold
from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.roce.seen import PortSeen, RoceSeen
from gpufab_cli.module_utils.roce.want import RoceWant
from gpufab_cli.module_utils.snapshot import Snapshot
from gpufab_cli.module_utils.texts import blame


@dataclass
class Facts:
    """Collects the facts of every check, host by host."""

    _facts: dict[int, dict[str, Fact]] = field(default_factory=dict)
    _profiles: dict[str, str] = field(default_factory=dict)

    def note(self, host: str, snapshot: Snapshot, wants: Wants, profile: str = "") -> None:
        """Take what the checks need from a snapshot of a host of which this is wanted."""
        self._profiles[host] = profile
        for index, check in enumerate(CHECKS):
            fact = check.fact(snapshot, wants)
            if fact is not None:
                self._facts.setdefault(index, {})[host] = fact

    def updated(self, hosts: Iterable[str], newer: Self) -> Self:
        """These facts, with those of some hosts replaced by newer ones."""
        gone = set(hosts)
        kept = {index: {h: fact for h, fact in facts.items() if h not in gone} for index, facts in self._facts.items()}
        merged = {
            index: kept.get(index, {}) | newer._facts.get(index, {}) for index in kept.keys() | newer._facts.keys()
        }
        return type(self)(merged, self._profiles | newer._profiles)

    def findings(self) -> tuple[FabricFinding, ...]:
        """What the checks say about all hosts noted. One whose fact a check stumbles over is left out, and named."""
        found = (
            _verdict(check, facts)
            for index, check in enumerate(CHECKS)
            for facts in self._compared(check, self._facts.get(index, {}))
        )
        return tuple(finding for findings in found for finding in findings)

    def _compared(self, check: Check, facts: dict[str, Fact]) -> Iterable[dict[str, Fact]]:
        """The facts that one verdict is on: those of all hosts, or of each profile's."""
        if not check.by_profile:
            return [facts]
        groups: dict[str, dict[str, Fact]] = {}
        for host, fact in sorted(facts.items()):
            groups.setdefault(self._profiles[host], {})[host] = fact
        return [groups[profile] for profile in sorted(groups)]


def _verdict(check: Check, facts: dict[str, Fact]) -> list[FabricFinding]:
    try:
        return list(check.verdict(facts))
    except Exception as error:
        reason = blame(error)
    culprits = tuple(host for host, fact in facts.items() if not _bears(check, {host: fact})) or tuple(
        host for host in facts if _bears(check, {other: fact for other, fact in facts.items() if other != host})
    )
    rest = {host: fact for host, fact in facts.items() if host not in (culprits or facts)}
    named = FabricFinding(STUMBLED, culprits or tuple(facts), short(reason), unknown=True)
    return [named, *(_verdict(check, rest) if rest else ())]


def _bears(check: Check, facts: Mapping[str, Fact]) -> bool:
    """Whether a check comes to a verdict over these hosts."""
    try:
        tuple(check.verdict(facts))
    except Exception:
        return False
    return True


STUMBLED = "fabric.stumbled"

Lossless = tuple[tuple[int, tuple[int, ...]], ...]
"""Each priority that pauses, with the DSCPs that lead to it."""


Found = tuple[tuple[str, frozenset[Lossless]], ...]
"""For each QoS profile the lossless classes of the ports that follow it."""


def lossless(snapshot: Snapshot, wants: Wants) -> Found | None:
    """The lossless classes of a host's ports as found; more than one in a profile when its own ports disagree."""
    seen, want = snapshot.seen.get("roce"), wants.get("roce")
    if not isinstance(seen, RoceSeen) or not isinstance(want, RoceWant):
        return None
    found: dict[str, set[Lossless]] = {}
    for port in want.ports:
        classes = _classes(seen.ports[port.pci]) if port.pci in seen.ports else None
        if classes is not None:
            found.setdefault(port.qos, set()).add(classes)
    return tuple((qos, frozenset(classes)) for qos, classes in sorted(found.items())) or None


def _classes(port: PortSeen) -> Lossless | None:
    pfc, dscps = port.pfc, port.dscp_priority
    if isinstance(pfc, Unknown) or isinstance(dscps, Unknown):
        return None
    return tuple((priority, tuple(dscp for dscp, to in dscps if to == priority)) for priority in pfc)


def lossless_disagree(facts: Mapping[str, Found]) -> Iterator[FabricFinding]:
    """Name the hosts whose lossless class is not that of most, among the ports that follow one QoS profile.

    Of equal camps one that has a lossless class at all counts as most, then one whose own ports agree.
    """
    profiles: dict[str, dict[frozenset[Lossless], list[str]]] = {}
    for host in sorted(facts):
        for qos, classes in facts[host]:
            profiles.setdefault(qos, {}).setdefault(classes, []).append(host)
    for qos, camps in sorted(profiles.items()):
        ranked = sorted(camps.items(), key=lambda camp: (-len(camp[1]), camp[0] == {()}, len(camp[0])))
        outliers = tuple(host for _, hosts in ranked[1:] for host in hosts)
        words = "; ".join(f"{fold(hosts)}: {_words(classes)}" for classes, hosts in ranked)
        if outliers:
            yield FabricFinding("fabric.lossless-disagree", outliers, f"{qos}: {words}" if len(profiles) > 1 else words)


def _words(variants: frozenset[Lossless]) -> str:
    return " or ".join(sorted(_class_words(classes) for classes in variants))


def _class_words(classes: Lossless) -> str:
    if not classes:
        return "nothing lossless"
    return ", ".join(f"priority {priority} from DSCP {_numbers(dscps)}" for priority, dscps in classes)


def _numbers(dscps: tuple[int, ...]) -> str:
    return fold(map(str, dscps)).strip("[]") if dscps else "none"


def _twice(code: str, *, on_one_host: bool = False) -> Callable[[Mapping[str, twice.Owned]], Iterator[FabricFinding]]:
    def verdict(facts: Mapping[str, twice.Owned]) -> Iterator[FabricFinding]:
        for hosts, words in twice.shared(facts, on_one_host=on_one_host):
            yield FabricFinding(code, hosts, words)

    return verdict


CHECKS = (
    Check(lossless, lossless_disagree),
    Check(lambda snapshot, _: power.limits(snapshot), power.outliers),
    Check(lambda snapshot, _: guids.guids(snapshot), _twice("fabric.duplicate-guid", on_one_host=True)),
    Check(lambda snapshot, _: twice.macs(snapshot), _twice("fabric.duplicate-mac")),
    Check(lambda snapshot, _: twice.addresses(snapshot), _twice("fabric.duplicate-address")),
    Check(lambda snapshot, _: outliers.traits(snapshot), outliers.outliers),
    Check(lambda snapshot, _: layouts.traits(snapshot), layouts.differing, by_profile=True),
)
