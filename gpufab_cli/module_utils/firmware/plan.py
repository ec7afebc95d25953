"""Decide what would change in the firmware of the cards of a node. Pure.

Two steps a card: its parameters for the next boot, which touches nobody, and a reset that makes them current, which
takes consent. What is set and not yet current is pending; the reset's changes are the same values, seen running.
"""

from typing import Dict, FrozenSet, Iterator, List, Optional, Tuple

from ..change import Absent, Change, Finding, Impact, Path, Pending, Plan, Step, Unknown, Where
from ..devices import Devices, Netdev
from ..identity import management, problem, undecidable
from ..snapshot import Snapshot
from .cards import Card, cards, found_serial, functions
from .gather import GATE
from .seen import CardSeen, FirmwareSeen, Parameter
from .table import same
from .want import FirmwareWant, PortWant

FEATURE = "firmware"
RESET = "firmware-reset"
CODE = "firmware.parameter"
DISRUPTION = frozenset({Impact.FIRMWARE_RESET, Impact.LINK_FLAP, Impact.TRAFFIC})


def plan(snapshot: Snapshot, want: FirmwareWant) -> Plan:
    """What each card needs, and what is not gpufab's to change."""
    seen: FirmwareSeen = snapshot.seen[FEATURE]
    steps: List[Step] = []
    pending: List[Pending] = []
    findings = list(_version_findings(snapshot.devices, want))
    for card in cards(want.ports, found_serial(snapshot.devices)):
        wrong = [*_identity(snapshot.devices, card), *_conflicts(card)]
        if wrong:
            findings += wrong
            continue
        own = _Card(snapshot.devices, card, seen.cards[card.pci])
        steps += [step for step in (own.settings(), own.reset()) if step.changes]
        pending += own.pending()
        findings += own.unsupported()
    return Plan(tuple(steps), tuple(pending), tuple(findings))


def _identity(devices: Devices, card: Card) -> Iterator[Finding]:
    for port in card.ports:
        wrong = problem(devices, port, devices.nic(port.pci), port.guid)
        if wrong is not None:
            yield wrong


def _conflicts(card: Card) -> Iterator[Finding]:
    for name, evidence in card.conflicts.items():
        yield Finding("firmware.conflict", (card.pci, card.ports[0].rail, name), evidence)


def _version_findings(devices: Devices, want: FirmwareWant) -> Iterator[Finding]:
    for port in want.ports if want.versions else ():
        yield from _version(devices, port, want.versions or {})


def _version(devices: Devices, port: PortWant, versions: Dict[str, str]) -> Iterator[Finding]:
    """What is wrong with the card's version; nothing when it is as wanted or its PSID is not named."""
    nic, path = devices.nic(port.pci), (port.pci, port.rail)
    if nic is None:
        return
    psid, version = nic.psid, nic.fw_version
    if not isinstance(psid, str) or (psid in versions and not isinstance(version, str)):
        yield Finding("firmware.version", path, f"PSID {psid}, version {version}", unknown=True)
    elif versions.get(psid, version) != version:
        yield Finding("firmware.version", path, f"{psid} has {version}, {versions[psid]} is wanted")


class _Card:
    """What one card needs."""

    def __init__(self, devices: Devices, card: Card, seen: CardSeen) -> None:
        self._devices, self._card, self._seen = devices, card, seen

    def _wanted(self) -> Iterator[Tuple[Path, str, Parameter]]:
        """Each wanted parameter that the firmware has; all of them, unknown, when the card cannot be read."""
        table = self._seen.parameters
        for name, wish in self._card.parameters.items():
            found = Parameter(table, table, table) if isinstance(table, Unknown) else table[name]
            if isinstance(found, Parameter):
                yield (self._card.pci, name), wish, found

    def settings(self) -> Step:
        """The values for the next boot: writing them disturbs nobody."""
        changes = tuple(
            Change(path, found.next_boot, wish, CODE, Where.NEXT_BOOT)
            for path, wish, found in self._wanted()
            if not same(found.next_boot, wish)
        )
        return Step(f"{FEATURE} {self._card.rails}", changes, device=self._card.pci)

    def reset(self) -> Step:
        """The reset that makes current what is set by then; it takes the card's VFs away first."""
        changes = tuple(
            Change(path, found.current, wish, CODE)
            for path, wish, found in self._wanted()
            if not same(found.current, wish)
        )
        impact = DISRUPTION | self._management() | ({Impact.VF_LOSS} if self._seen.vfs else frozenset())
        name, blocked = f"{RESET} {self._card.rails}", self._undecidable()
        return Step(name, changes, impact, self._card.pci, blocked, self._seen.users, undoable=False)

    def pending(self) -> Iterator[Pending]:
        """What only waits for the reset."""
        for path, wish, found in self._wanted():
            waits = same(found.next_boot, wish) and not same(found.current, wish)
            if waits and not isinstance(found.current, Unknown):
                yield Pending(path, found.current, wish, Impact.FIRMWARE_RESET, CODE)

    def unsupported(self) -> Iterator[Finding]:
        """Wanted parameters that the card does not have, and that nothing wanted would bring to light."""
        table = self._seen.parameters
        if isinstance(table, Unknown) or self._gate_opens():
            return
        for name in self._card.parameters:
            if isinstance(table[name], Absent):
                path = (self._card.pci, self._card.ports[0].rail, name)
                yield Finding("firmware.unsupported", path, f"{self._card.pci} has no parameter {name}")

    def _gate_opens(self) -> bool:
        """Whether hidden parameters will show after the reset that is due."""
        table = self._seen.parameters
        gate: Optional[object] = table.get(GATE) if isinstance(table, dict) else None
        wish = self._card.parameters.get(GATE)
        return wish is not None and same("1", wish) and isinstance(gate, Parameter) and not same(gate.current, wish)

    def _management(self) -> FrozenSet[Impact]:
        return frozenset().union(*(management(netdev) for netdev in self._netdevs()))

    def _undecidable(self) -> str:
        return next((why for netdev in self._netdevs() if (why := undecidable(netdev))), "")

    def _netdevs(self) -> Iterator[Netdev]:
        for pci in functions(self._devices, self._card.pci):
            nic = self._devices.nic(pci)
            yield from nic.netdevs if nic is not None else ()
