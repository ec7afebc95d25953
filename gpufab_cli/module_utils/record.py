"""What gpufab set or left pending on this node, and at which boot: /var/lib/gpufab/record/FEATURE.json.

Some values cannot be read back, and some come only with a reset. The record tells a value that was never set from
one that was lost, and keeps a change that a reset did not bring from asking for another reset.
"""

import json
from dataclasses import dataclass, replace
from typing import Any, Dict, FrozenSet, Iterable, Mapping, Optional, Set, Tuple, Union

from .change import ABSENT, Absent, Change, Finding, Impact, Path, Pending, Plan, Step, Unknown, Where
from .devices import Devices
from .host import Host, Reader
from .schema import SchemaError, decode, encode
from .texts import parse_json

FOLDER = "/var/lib/gpufab/record"
NESTING = 16
"""Levels of a record: a snapshot holds it some levels down, and must stay readable."""
MANAGEMENT = "/var/lib/gpufab/management-ports.json"


@dataclass(frozen=True)
class Entry:
    """One value, set at a boot, and in a load of its driver where it is lost with that; or pending since then."""

    path: Path
    value: Any
    boot_id: str
    pending: bool = False
    load: str = ""
    tried: bool = False
    """A firmware reset was made for it and did not bring it."""


Record = Union[Tuple[Entry, ...], Absent, Unknown]


def _file(feature: str) -> str:
    return f"{FOLDER}/{feature}.json"


def read(host: Reader, feature: str) -> Record:
    """The record of a feature; ABSENT when nothing was ever set, Unknown when it cannot be read."""
    text = host.read(_file(feature))
    if not isinstance(text, str):
        return text
    try:
        entries: Tuple[Entry, ...] = decode(Tuple[Entry, ...], parse_json(text, NESTING))
    except ValueError as error:
        return Unknown(f"{_file(feature)}: {error}")
    return entries


def value(record: Record, path: Path, boot_id: str, load: str) -> Any:
    """What gpufab set and nothing has forgotten since, for a value that cannot be read back.

    ABSENT: it was never set, or a reboot or driver reload has lost it. Unknown: the record cannot be read.
    """
    if isinstance(record, Unknown):
        return record
    entry = next((e for e in (record if isinstance(record, tuple) else ()) if e.path == path), None)
    holds = entry is not None and not entry.pending and (entry.boot_id, entry.load) == (boot_id, load)
    return entry.value if entry is not None and holds else ABSENT


def with_made(record: Record, made: Iterable[Change], boot_id: str) -> Record:
    """The record as it is once the changes are made."""
    entries = {entry.path: entry for entry in (record if isinstance(record, tuple) else ())}
    for change in made:
        entry = entries.get(change.path)
        if change.where is not Where.NEXT_BOOT:
            entries[change.path] = Entry(change.path, change.desired, boot_id, load=change.load)
        elif entry is None or not entry.tried or entry.value != change.desired:
            entries[change.path] = Entry(change.path, change.desired, boot_id, pending=True)
    return tuple(entries[path] for path in sorted(entries))


def note(host: Host, feature: str, boot_id: str, made: Iterable[Change], pending: Iterable[Pending]) -> None:
    """Remember what was made now, and since which boot what is pending has been so."""
    old = read(host, feature)
    record = with_made(old, made, boot_id)
    entries: Dict[Path, Entry] = {entry.path: entry for entry in (record if isinstance(record, tuple) else ())}
    for item in pending:
        known = entries.get(item.path)
        if known is None or not known.pending or known.value != item.next_boot:
            entries[item.path] = Entry(item.path, item.next_boot, boot_id, pending=True)
    _write(host, feature, entries)


def note_tried(host: Host, feature: str, boot_id: str, changes: Iterable[Change]) -> None:
    """Remember that a firmware reset was made for these values and did not bring them."""
    old = read(host, feature)
    entries: Dict[Path, Entry] = {entry.path: entry for entry in (old if isinstance(old, tuple) else ())}
    for change in changes:
        entries[change.path] = Entry(change.path, change.desired, boot_id, pending=True, tried=True)
    _write(host, feature, entries)


def _write(host: Host, feature: str, entries: Mapping[Path, Entry]) -> None:
    text = json.dumps(encode(tuple(entries[path] for path in sorted(entries))), indent=1) + "\n"
    if host.read(_file(feature)) != text.rstrip("\n"):
        host.put(_file(feature), text.encode(), 0o600)


def note_management_ports(host: Host, devices: Devices) -> None:
    """Remember which NIC functions the node itself depends on, for a restore that runs before that shows.

    Where it cannot be told what one carries, what was remembered before stands, if anything was.
    """
    netdevs = [netdev for nic in devices.nics for netdev in nic.netdevs]
    if any(isinstance(netdev.carries, Unknown) for netdev in netdevs):
        return
    ports = sorted(nic.pci for nic in devices.nics if any(netdev.carries for netdev in nic.netdevs))
    text = json.dumps(ports) + "\n"
    if host.read(MANAGEMENT) != text.rstrip("\n"):
        host.put(MANAGEMENT, text.encode(), 0o600)


def management_ports(host: Reader) -> Union[FrozenSet[str], Unknown]:
    """The PCI addresses remembered by the last apply; Unknown when none could tell, and any port may be one.

    Raises:
        SchemaError: what is remembered is damaged; a restore then touches nothing.
    """
    text = host.read(MANAGEMENT)
    if text is ABSENT:
        return Unknown("no apply could tell which ports the node depends on")
    try:
        ports: FrozenSet[str] = decode(FrozenSet[str], parse_json(str(text)), MANAGEMENT)
    except ValueError as error:
        raise SchemaError(f"{MANAGEMENT}: {error}") from error
    return ports


def without_stuck(plan: Plan, record: Record, boot_id: str) -> Plan:
    """Turn each change that a reset should have brought and did not into a finding: no second reset for it."""
    since = {entry.path: entry for entry in (record if isinstance(record, tuple) else ()) if entry.pending}
    stuck = {item.path: why for item in plan.pending if (why := _stuck(item, since.get(item.path), boot_id))}
    findings = tuple(Finding("node.reset-without-effect", path, why) for path, why in stuck.items())
    tried = {path for path in stuck if since[path].tried}
    return replace(
        plan,
        steps=tuple(step for step in plan.steps if not _in_vain(step, tried)),
        pending=tuple(item for item in plan.pending if item.path not in stuck),
        findings=plan.findings + findings,
    )


def _stuck(item: Pending, entry: Optional[Entry], boot_id: str) -> str:
    """Why the next reset would bring the change no more than the last one did; "" when it may."""
    if entry is None or entry.value != item.next_boot:
        return ""
    firmware = item.waits_for is Impact.FIRMWARE_RESET
    if firmware and entry.tried:
        return f"still {item.running} after a firmware reset: cold boot needed"
    if entry.boot_id == boot_id or not (firmware or item.waits_for is Impact.REBOOT):
        return ""
    return f"still {item.running} after a reboot" + (": firmware reset or cold boot needed" if firmware else "")


def _in_vain(step: Step, tried: Set[Path]) -> bool:
    return Impact.FIRMWARE_RESET in step.impact and {change.path for change in step.changes} <= tried
