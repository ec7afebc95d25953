"""Contradictions within a fabric.yml: what no single value can tell."""

from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pydantic import ValidationError

from gpufab_cli.errors import did_you_mean
from gpufab_cli.spec import ranges
from gpufab_cli.spec.bond import bond_faults
from gpufab_cli.spec.dvfs import job_faults
from gpufab_cli.spec.faults import Fault, Nested
from gpufab_cli.spec.mpi import mpi_faults
from gpufab_cli.spec.nccl_env import nccl_env_faults
from gpufab_cli.spec.numa import argument_faults
from gpufab_cli.spec.override import overridden
from gpufab_cli.spec.sriov import sriov_faults

if TYPE_CHECKING:
    from gpufab_cli.spec.model import FabricSpec, HostEntry, Network, Profile, Qos

Loc = tuple[Any, ...]


def qos_faults(qos: "Qos") -> Iterator[Fault]:
    """Classes that share what they must not share, and ETS shares that do not add up."""
    yield from _dscp_faults(qos)
    yield from _priority_faults(qos)
    if qos.ecn and qos.cnp is None:
        yield Fault(("cnp",), "missing, and ecn is on", "say how CNPs are marked: cnp: {priority: 6, dscp: 48}")
    if qos.ets is not None:
        yield from _ets_faults(qos, qos.ets)


def _dscp_faults(qos: "Qos") -> Iterator[Fault]:
    """One DSCP in two classes."""
    owner: dict[int, str] = {}
    for loc, dscp in _named_dscps(qos):
        where = f"{loc[0]}[{loc[1]}]" if loc[0] == "lossless" else str(loc[0])
        if dscp in owner:
            yield Fault(loc, f"DSCP {dscp} is already in {owner[dscp]}", "a DSCP belongs to one class")
        owner.setdefault(dscp, where)


def _named_dscps(qos: "Qos") -> Iterator[tuple[Loc, int]]:
    for number, item in enumerate(qos.lossless):
        for index, dscp in enumerate(item.dscp):
            yield ("lossless", number, "dscp", index), dscp
    if qos.cnp is not None:
        yield ("cnp", "dscp"), qos.cnp.dscp
    for dscp in qos.extra_dscp:
        yield ("extra_dscp", dscp), dscp


def _priority_faults(qos: "Qos") -> Iterator[Fault]:
    """Traffic of another kind on a lossless priority, or best effort on that of the CNPs."""
    lossless: set[int] = set()
    for number, item in enumerate(qos.lossless):
        if item.priority in lossless:
            loc = ("lossless", number, "priority")
            yield Fault(loc, f"priority {item.priority} is that of another class", "put its DSCPs into that class")
        lossless.add(item.priority)
    if qos.cnp is not None and qos.cnp.priority in lossless:
        hint = "CNPs must pass where data is paused: give them a priority of their own"
        yield Fault(("cnp", "priority"), f"priority {qos.cnp.priority} carries lossless data", hint)
    others: list[tuple[Loc, int]] = [(("other_dscp", "priority"), qos.other_dscp.priority)]
    others += [(("extra_dscp", dscp), priority) for dscp, priority in qos.extra_dscp.items()]
    for loc, priority in others:
        if priority in lossless:
            yield Fault(loc, f"priority {priority} is lossless", "only the DSCPs listed under lossless may go there")
    if qos.cnp is not None and qos.other_dscp.priority == qos.cnp.priority:
        yield Fault(others[0][0], f"priority {qos.cnp.priority} is that of the CNPs", "best effort would hold them up")


def _ets_faults(qos: "Qos", ets: dict[int, int]) -> Iterator[Fault]:
    known = {item.priority for item in qos.lossless} | {qos.other_dscp.priority} | set(qos.extra_dscp.values())
    cnp = {qos.cnp.priority} if qos.cnp else set()
    needed, known = known - cnp, known | cnp
    for priority in ets:
        if priority not in known:
            yield Fault(("ets", priority), f"no class has priority {priority}", f"in use: {_listed(known)}")
    missing = needed - set(ets)
    if missing:
        hint = "it would starve; only the CNPs' priority may be left out (it is strict then)"
        yield Fault(("ets",), f"no share for priority {_listed(missing)}", hint)
    total = sum(ets.values())
    if total != 100:  # noqa: PLR2004
        yield Fault(("ets",), f"sums to {total}, must be 100")


def _listed(numbers: set[int]) -> str:
    return ", ".join(map(str, sorted(numbers)))


def network_faults(network: "Network") -> Iterator[Fault]:
    """What a transport needs, or has no use for."""
    if network.transport == "roce" and network.qos is None:
        yield Fault(("qos",), "missing; a roce network follows a QoS profile", "qos: NAME, declared under qos")
    if network.transport != "roce" and network.qos is not None:
        kind = "an ethernet" if network.transport == "ethernet" else "an infiniband"
        yield Fault(("qos",), f"{kind} network follows no QoS profile", "transport: roce, or leave qos out")


def entry_faults(entry: "HostEntry") -> Iterator[Fault]:
    """Not as many addresses as names."""
    if entry.address is not None:
        names, addresses = len(ranges.expand(entry.name)), len(ranges.expand(entry.address))
        if names != addresses:
            yield Fault(("address",), f"{addresses} addresses for {names} names", "both ranges must be as long")


def not_too_many(entries: Any) -> Any:
    """Return what stands under hosts; it is counted before any of it is written out.

    Raises:
        ValueError: it is more hosts in all than any fabric has.
    """
    total = 0
    for entry in entries if isinstance(entries, (list, tuple)) else ():
        name = entry.get("name") if isinstance(entry, dict) else None
        with suppress(ValueError):  # told at its own line
            total += ranges.count(name) if isinstance(name, str) else 0
    if total > ranges.MAX_HOSTS:
        raise ValueError(f"{total} hosts in all, more than {ranges.MAX_HOSTS}")
    return entries


def reference_faults(spec: "FabricSpec") -> Iterator[Fault]:
    """Names that are used and not declared, and rails that a network does not have."""
    for name, network in spec.networks.items():
        if network.qos is not None and network.qos not in spec.qos:
            yield _undeclared(("networks", name, "qos"), "QoS profile", network.qos, spec.qos)
    for index, entry in enumerate(spec.host_entries):
        if entry.profile not in spec.profiles:
            yield _undeclared(("hosts", index, "profile"), "profile", entry.profile, spec.profiles)
    for name, profile in spec.profiles.items():
        for fault in profile_faults(spec, profile):
            yield Fault(("profiles", name, *fault.loc), fault.message, fault.hint)


def override_faults(spec: "FabricSpec") -> Iterator[Fault | Nested]:
    """Overrides that make no profile of the merged whole, or one that does not fit the fabric."""
    for index, entry in enumerate(spec.host_entries):
        if not entry.override:
            continue
        loc: Loc = ("hosts", index, "override")
        base = spec.profiles[entry.profile]
        try:
            merged = overridden(base, entry.override)
        except ValidationError as failure:
            yield Nested(loc, type(base), failure)
            continue
        for fault in profile_faults(spec, merged):
            yield Fault((*loc, *fault.loc), fault.message, fault.hint)


def _undeclared(loc: Loc, kind: str, name: str, known: Any) -> Fault:
    return Fault(loc, f"no {kind} {name!r}", did_you_mean(name, known))


def profile_faults(spec: "FabricSpec", profile: "Profile") -> Iterator[Fault]:
    """Where a profile does not fit the fabric; paths are relative to the profile."""
    yield from job_faults(profile.gpus, profile.jobs)
    yield from sriov_faults(spec, profile)
    yield from bond_faults(spec, profile)
    yield from nccl_env_faults(spec, profile)
    yield from mpi_faults(spec, profile)
    yield from argument_faults(profile)
    seen: set[tuple[str, int]] = set()
    for index, ports in enumerate(profile.ports):
        loc: Loc = ("ports", index)
        network = spec.networks.get(ports.network)
        if network is None:
            yield _undeclared((*loc, "network"), "network", ports.network, spec.networks)
            continue
        for number in ports.rail:
            if number >= network.rails:
                last = network.rails - 1
                hint = f"its rails are 0 to {last}" if last else "rails, under networks, says how many it has: one"
                yield Fault((*loc, "rail"), f"{ports.network} has no rail {number}", hint)
            if (ports.network, number) in seen:
                yield Fault((*loc, "rail"), f"rail {number} of {ports.network} is given twice")
            seen.add((ports.network, number))


def host_faults(spec: "FabricSpec") -> Iterator[Fault]:
    """Two hosts with one name or one address; case does not tell them apart."""
    names: Counter[str] = Counter()
    addresses: dict[str, str] = {}
    for index, entry in enumerate(spec.host_entries):
        for host in entry.hosts(index):
            name, address = host.name.lower(), host.address.lower()
            if names[name]:
                yield Fault(("hosts", index, "name"), f"{host.name} is declared twice")
            elif address in addresses:
                yield Fault(("hosts", index, "address"), f"{host.name} has the address of {addresses[address]}")
            names[name] += 1
            addresses.setdefault(address, host.name)
