"""What gpufab set or left pending on this node, and at which boot: /var/lib/gpufab/record/FEATURE.json.

Some values cannot be read back, and some come only with a reset. The record tells a value that was never set from
one that was lost, and keeps a change that a reset did not bring from asking for another reset.
"""

import json
from dataclasses import dataclass, replace
from typing import Any, Dict, FrozenSet, Iterable, List, Tuple, Union

from .change import ABSENT, Absent, Change, Finding, Impact, Path, Pending, Plan, Unknown
from .devices import Devices
from .host import Host, Reader
from .schema import SchemaError, decode, encode

FOLDER = "/var/lib/gpufab/record"
MANAGEMENT = "/var/lib/gpufab/management-ports.json"


@dataclass(frozen=True)
class Entry:
    """One value, set at a boot or pending since then."""

    path: Path
    value: Any
    boot_id: str
    pending: bool = False


Record = Union[Tuple[Entry, ...], Absent, Unknown]


def _file(feature: str) -> str:
    return f"{FOLDER}/{feature}.json"


def read(host: Reader, feature: str) -> Record:
    """The record of a feature; ABSENT when nothing was ever set, Unknown when it cannot be read."""
    text = host.read(_file(feature))
    if not isinstance(text, str):
        return text
    try:
        entries: Tuple[Entry, ...] = decode(Tuple[Entry, ...], json.loads(text))
    except (ValueError, SchemaError) as error:
        return Unknown(f"{_file(feature)}: {error}")
    return entries


def note(host: Host, feature: str, boot_id: str, made: Iterable[Change], pending: Iterable[Pending]) -> None:
    """Remember what was made now, and since which boot what is pending has been so."""
    old = read(host, feature)
    entries: Dict[Path, Entry] = {entry.path: entry for entry in (old if isinstance(old, tuple) else ())}
    for change in made:
        entries[change.path] = Entry(change.path, change.desired, boot_id)
    for item in pending:
        known = entries.get(item.path)
        if known is None or not known.pending or known.value != item.next_boot:
            entries[item.path] = Entry(item.path, item.next_boot, boot_id, pending=True)
    text = json.dumps(encode(tuple(entries[path] for path in sorted(entries))), indent=1) + "\n"
    if host.read(_file(feature)) != text.rstrip("\n"):
        host.put(_file(feature), text.encode(), 0o600)


def note_management_ports(host: Host, devices: Devices) -> None:
    """Remember which NIC functions the node itself depends on, for a restore that runs before that shows."""
    ports = sorted(nic.pci for nic in devices.nics if any(netdev.carries for netdev in nic.netdevs))
    text = json.dumps(ports) + "\n"
    if host.read(MANAGEMENT) != text.rstrip("\n"):
        host.put(MANAGEMENT, text.encode(), 0o600)


def management_ports(host: Reader) -> FrozenSet[str]:
    """The PCI addresses remembered by the last apply; none when there was none.

    Raises:
        SchemaError: what is remembered is damaged; a restore then touches nothing.
    """
    text = host.read(MANAGEMENT)
    if text is ABSENT:
        return frozenset()
    try:
        ports: FrozenSet[str] = decode(FrozenSet[str], json.loads(str(text)), MANAGEMENT)
    except ValueError as error:
        raise SchemaError(f"{MANAGEMENT}: {error}") from error
    return ports


def without_stuck(plan: Plan, record: Record, boot_id: str) -> Plan:
    """Turn each change that a reboot should have brought and did not into a finding: no second reboot for it."""
    since = {entry.path: entry for entry in (record if isinstance(record, tuple) else ()) if entry.pending}
    waiting: List[Pending] = []
    findings = list(plan.findings)
    for item in plan.pending:
        entry = since.get(item.path)
        stuck = entry is not None and entry.value == item.next_boot and entry.boot_id != boot_id
        if stuck and item.waits_for is Impact.REBOOT:
            findings.append(Finding("node.reset-without-effect", item.path, f"still {item.running} after a reboot"))
        else:
            waiting.append(item)
    return replace(plan, pending=tuple(waiting), findings=tuple(findings))
