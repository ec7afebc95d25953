"""Decide what would change of the VFs of a node. Pure: all of one physical port is one step.

A count is changed by writing 0 first, which takes all VFs away; what the step does not name of the VFs that stay is
set again as it was (:mod:`.apply`).
"""

from typing import FrozenSet, Iterator, List, Optional, Tuple, Union

from ..change import ABSENT, Change, Finding, Impact, Plan, Step, Unknown, Where
from ..devices import Devices, Nic
from ..host import sha256
from ..identity import management, problem, undecidable
from ..snapshot import Snapshot
from .files import contents
from .seen import ATTRIBUTES, PortSeen, SriovSeen, VfSeen
from .want import PortWant, SriovWant, VfWant

FEATURE = "sriov"
UNMANAGED_STEP = "sriov network managers"
NEEDS_UP = "bnxt_en"
"""The driver whose port must be up before it makes VFs."""
NO_GUID = "00:00:00:00:00:00:00:00"
REBOUND = frozenset({"mac", "node_guid", "port_guid", "rdma_guid"})
"""What a VF takes over only when its driver is bound anew."""

CODES = {
    "mac": "sriov.address",
    "node_guid": "sriov.address",
    "port_guid": "sriov.address",
    "rdma_guid": "sriov.guid-zero",
    "vlan": "sriov.vlan",
    "vlan_qos": "sriov.vlan",
    "max_tx_mbps": "sriov.rate",
    "min_tx_mbps": "sriov.rate",
    "spoofchk": "sriov.security",
    "trust": "sriov.security",
    "link_state": "sriov.link-state",
}

Users = Union[Tuple[str, ...], Unknown]


def plan(snapshot: Snapshot, want: SriovWant) -> Plan:
    """One step a port that differs, one for the network managers, and findings."""
    seen: SriovSeen = snapshot.seen[FEATURE]
    steps = [_unmanaged(seen, want.unmanaged)] if want.unmanaged is not None else []
    findings: List[Finding] = []
    for port in want.ports:
        nic = snapshot.devices.nic(port.pci)
        wrong = problem(snapshot.devices, port, nic, port.guid)
        if wrong is not None or nic is None:
            findings += [wrong] if wrong is not None else []
            continue
        found = seen.ports[port.pci]
        findings += _findings(port, nic, found)
        if found.eswitch in (ABSENT, "legacy") or isinstance(found.eswitch, Unknown):
            steps.append(_step(snapshot.devices, port, nic, found))
    return Plan(tuple(step for step in steps if step.changes), findings=tuple(findings))


def _unmanaged(seen: SriovSeen, unmanaged: Optional[bool]) -> Step:
    wanted = {path: sha256(content) if unmanaged else ABSENT for path, content in contents().items()}
    changes = tuple(
        Change((path,), seen.files[path], value, "sriov.unmanaged", Where.PERSISTED)
        for path, value in wanted.items()
        if seen.files[path] != value
    )
    return Step(UNMANAGED_STEP, changes)


def _findings(port: PortWant, nic: Nic, found: PortSeen) -> Iterator[Finding]:
    path = (port.pci, port.rail)
    if isinstance(found.eswitch, str) and found.eswitch != "legacy":
        yield Finding("sriov.switchdev", path, f"the e-switch is in mode {found.eswitch}")
        return
    active = any(device.state == "ACTIVE" for device in nic.rdma)
    for index, vf in enumerate(found.vfs):
        place = (port.pci, port.rail, f"vf{index}")
        if active and vf.rdma_state == "DOWN":
            yield Finding("sriov.vf-down", place, f"{vf.pci} is down, its port is up")
        if not vf.driver and found.autoprobe is True and port.autoprobe is not False:
            yield Finding("sriov.vf-unbound", place, f"{vf.pci} has no driver")


def _step(devices: Devices, port: PortWant, nic: Nic, found: PortSeen) -> Step:
    changes = (*_set_up(port, nic, found), *_changes(port, found))
    impact = _impact(devices, nic, found, changes)
    return Step(
        f"{FEATURE} {port.rail}",
        changes,
        impact,
        port.pci,
        _blocked(port, nic, found) if impact else "",
        _users(found, changes) if Impact.VF_LOSS in impact else (),
    )


def _set_up(port: PortWant, nic: Nic, found: PortSeen) -> Iterator[Change]:
    """bnxt_en takes a count while its netdev is down, and makes no VFs (bnxt_sriov.c, bnxt_sriov_configure)."""
    makes = bool(port.vfs) and found.numvfs not in (len(port.vfs), ABSENT)
    if makes and nic.driver == NEEDS_UP and found.admin_up not in (True, ABSENT):
        yield Change((port.pci, "admin_up"), found.admin_up, True, "sriov.port-down")


def _changes(port: PortWant, found: PortSeen) -> Iterator[Change]:
    """The changes of a port, in the order in which they are made."""
    count = len(port.vfs)
    if port.autoprobe is not None and found.autoprobe not in (port.autoprobe, ABSENT):
        yield Change((port.pci, "autoprobe"), found.autoprobe, port.autoprobe, "sriov.autoprobe")
    if (0 if found.numvfs is ABSENT else found.numvfs) != count:
        yield Change((port.pci, "numvfs"), found.numvfs, count, "sriov.count")
    for index, vf in enumerate(port.vfs):
        now = found.vfs[index] if index < len(found.vfs) else None
        yield from _vf_changes((port.pci, f"vf{index}"), vf, now)


def _vf_changes(path: Tuple[str, str], vf: VfWant, now: Optional[VfSeen]) -> Iterator[Change]:
    for name in ATTRIBUTES:
        desired, current = getattr(vf, name), ABSENT if now is None else getattr(now, name)
        if desired is not None and current != desired:
            yield Change((*path, name), current, desired, CODES[name])
    if now is not None and now.rdma_guid == NO_GUID and vf.mac is not None:
        yield Change((*path, "rdma_guid"), NO_GUID, guid_of_mac(vf.mac), CODES["rdma_guid"])


def guid_of_mac(mac: str) -> str:
    """The node GUID that mlx5 gives an Ethernet VF (node_guid_gen_from_mac in mlx5_core's vport code)."""
    octets = mac.split(":")
    return ":".join([*octets[:3], "ff", "fe", *octets[3:]])


def _impact(devices: Devices, nic: Nic, found: PortSeen, changes: Tuple[Change, ...]) -> FrozenSet[Impact]:
    names = {change.path[-1] for change in changes}
    if not names - {"autoprobe"}:
        return frozenset()
    lost = found.vfs if "numvfs" in names else _rebound(found, changes)
    impact = frozenset({Impact.TRAFFIC, Impact.VF_LOSS} if lost else {Impact.TRAFFIC})
    impact |= {Impact.LINK_FLAP} if "admin_up" in names else set()
    own = [netdev for netdev in nic.netdevs if names & {"numvfs", "admin_up"}]
    theirs = [netdev for vf in lost for other in devices.nics if other.pci == vf.pci for netdev in other.netdevs]
    return impact.union(*(management(netdev) for netdev in (*own, *theirs)))


def _rebound(found: PortSeen, changes: Tuple[Change, ...]) -> Tuple[VfSeen, ...]:
    """The VFs that the step binds anew: those with a driver in the kernel whose address changes."""
    indexes = {int(change.path[1][2:]) for change in changes if change.path[-1] in REBOUND}
    return tuple(vf for index, vf in enumerate(found.vfs) if index in indexes and vf.driver)


def _users(found: PortSeen, changes: Tuple[Change, ...]) -> Users:
    counted = any(change.path[-1] == "numvfs" for change in changes)
    users: List[str] = []
    for vf in found.vfs if counted else _rebound(found, changes):
        if isinstance(vf.users, Unknown):
            return vf.users
        users += vf.users
    return tuple(users)


def _blocked(port: PortWant, nic: Nic, found: PortSeen) -> str:
    """What forbids the step whatever is consented to."""
    count = len(port.vfs)
    if isinstance(found.eswitch, Unknown):
        return f"cannot tell the e-switch mode: {found.eswitch.reason}"
    if found.numvfs is ABSENT and count:
        return "the device shows no SR-IOV: it is off in firmware (SRIOV_EN) or in the BIOS"
    if isinstance(found.totalvfs, int) and count > found.totalvfs:
        return f"{count} VFs are wanted, the firmware allows {found.totalvfs} (NUM_OF_VFS)"
    if not nic.netdevs:
        return f"{port.pci} has no netdev, through which its VFs are set"
    if nic.netdev is None:
        return f"{port.pci} has {len(nic.netdevs)} netdevs, not one"
    return undecidable(nic.netdev)
