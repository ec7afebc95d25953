"""Decide what would change on the RoCE ports of a node. Pure: one lossless class on one port is one step."""

from dataclasses import fields
from typing import Any, Callable, Dict, FrozenSet, Iterator, List, Optional, Tuple

from ..change import ABSENT, Change, Finding, Impact, Plan, Step, Unknown
from ..devices import Devices, Netdev, Nic
from ..snapshot import Snapshot
from .seen import PortSeen, RoceSeen
from .want import PortWant, QosWant, RoceWant

FEATURE = "roce"

# What each setting does to those who use the port. PFC: mlx5 toggles the link at an effective change
# (mlx5e_dcbnl_ieee_setpfc). Trust, map and ETS reconfigure queues under live traffic. RDMA-CM's defaults act on
# connections made later only.
IMPACT: Dict[str, FrozenSet[Impact]] = {
    "pause": frozenset({Impact.TRAFFIC}),
    "trust": frozenset({Impact.TRAFFIC}),
    "dscp_priority": frozenset({Impact.TRAFFIC}),
    "pfc": frozenset({Impact.TRAFFIC, Impact.LINK_FLAP}),
    "prio_tc": frozenset({Impact.TRAFFIC}),
    "tc_tsa": frozenset({Impact.TRAFFIC}),
    "tc_bw": frozenset({Impact.TRAFFIC}),
    "ecn_np": frozenset({Impact.TRAFFIC}),
    "ecn_rp": frozenset({Impact.TRAFFIC}),
    "cnp_dscp": frozenset({Impact.TRAFFIC}),
    "cnp_priority": frozenset({Impact.TRAFFIC}),
    "traffic_class": frozenset({Impact.TRAFFIC}),
    "rdma_cm_tos": frozenset(),
    "rdma_cm_mode": frozenset(),
}
CODES = {
    "pause": "roce.pause",
    "trust": "roce.trust",
    "dscp_priority": "roce.dscp-map",
    "pfc": "roce.pfc",
    "prio_tc": "roce.ets",
    "tc_tsa": "roce.ets",
    "tc_bw": "roce.ets",
    "ecn_np": "roce.ecn",
    "ecn_rp": "roce.ecn",
    "cnp_dscp": "roce.cnp",
    "cnp_priority": "roce.cnp",
    "traffic_class": "roce.traffic-class",
    "rdma_cm_tos": "roce.rdma-cm",
    "rdma_cm_mode": "roce.rdma-cm",
}


def plan(snapshot: Snapshot, want: RoceWant) -> Plan:
    """One step a port that differs, and a finding for whatever is not gpufab's to change."""
    seen: RoceSeen = snapshot.seen[FEATURE]
    steps: List[Step] = []
    findings: List[Finding] = []
    for port in want.ports:
        nic = snapshot.devices.nic(port.pci)
        problem = _identity(snapshot.devices, port, nic)
        if problem is not None or nic is None:
            findings += [problem] if problem is not None else []
            continue
        findings += _findings(port, nic, seen.ports[port.pci])
        step = _step(port, nic, seen, want.qos[port.qos])
        steps += [step] if step.changes else []
    if seen.lldpad is not None:
        findings.append(Finding("foreign.lldpad", ("lldpad",), f"lldpad runs as process {seen.lldpad}"))
    return Plan(tuple(steps), findings=tuple(findings))


def _identity(devices: Devices, port: PortWant, nic: Optional[Nic]) -> Optional[Finding]:
    """Why the device at the address is not the one the lock holds, if it is not."""
    path = (port.pci, port.rail)
    moved = devices.nic_by_mac(port.mac) if port.mac else None
    if nic is None or not nic.netdevs:
        if moved is not None:
            return Finding("device.moved", path, f"{port.mac} is now at {moved.pci}")
        what = "nothing there" if nic is None else "no netdev there: the driver is not loaded or has failed"
        return Finding("device.missing", path, what)
    if nic.netdev is None or nic.is_vf:
        return Finding("device.ambiguous", path, f"{len(nic.netdevs)} netdevs" if not nic.is_vf else "a VF")
    if port.serial and isinstance(nic.serial, str) and nic.serial != port.serial:
        return Finding("device.replaced", path, f"serial {nic.serial}, the lock holds {port.serial}")
    if port.mac and nic.netdev.mac != port.mac:
        return Finding("device.replaced", path, f"MAC {nic.netdev.mac}, the lock holds {port.mac}")
    return None


def _findings(port: PortWant, nic: Nic, seen: PortSeen) -> Iterator[Finding]:
    netdev = nic.netdev
    if netdev is None:
        return
    path = (port.pci, port.rail)
    if port.mtu is not None and netdev.mtu != port.mtu:
        yield Finding("roce.mtu", path, f"{netdev.name} has {netdev.mtu}, the fabric wants {port.mtu}")
    if port.address is not None and isinstance(netdev.addresses, tuple) and port.address not in netdev.addresses:
        has = ", ".join(netdev.addresses) or "none"
        yield Finding("roce.address", path, f"{netdev.name} has {has}, the fabric wants {port.address}")
    if netdev.operstate != "up":
        yield Finding("roce.link", path, f"{netdev.name} is {netdev.operstate or 'in no known state'}")
    if len(nic.rdma) != 1:
        yield Finding("roce.rdma-device", path, f"{netdev.name} has {len(nic.rdma)} RDMA devices, not one")
    elif nic.rdma[0].link_layer != "Ethernet":
        yield Finding("roce.link-layer", path, f"{nic.rdma[0].name} is {nic.rdma[0].link_layer or 'unknown'}")
    if seen.traffic_class_rules:
        yield Finding("roce.traffic-class-rules", path, "; ".join(seen.traffic_class_rules))


def _step(port: PortWant, nic: Nic, seen: RoceSeen, qos: QosWant) -> Step:
    changes = tuple(_changes(port.pci, seen.ports[port.pci], qos))
    impact = frozenset().union(*(IMPACT[change.path[1]] for change in changes))
    blocked = f"lldpad (process {seen.lldpad}) owns the port's DCB settings" if seen.lldpad is not None else ""
    netdev = nic.netdev
    if netdev is not None:
        impact, blocked = impact | _management(netdev), blocked or _undecidable(netdev)
    return Step(f"{FEATURE} {port.rail}", changes, impact, port.pci, blocked)


def _management(netdev: Netdev) -> FrozenSet[Impact]:
    return frozenset({Impact.MANAGEMENT_PORT}) if netdev.carries and isinstance(netdev.carries, tuple) else frozenset()


def _undecidable(netdev: Netdev) -> str:
    return (
        f"cannot tell what {netdev.name} carries: {netdev.carries.reason}"
        if isinstance(netdev.carries, Unknown)
        else ""
    )


def _changes(pci: str, seen: PortSeen, qos: QosWant) -> Iterator[Change]:
    """The changes of a port, in the order in which they are made."""
    for item in fields(PortSeen):
        if item.name not in CODES:
            continue
        desired = _desired(item.name, getattr(seen, item.name), qos)
        if desired is not None:
            yield Change((pci, item.name), getattr(seen, item.name), desired, CODES[item.name])


def _desired(name: str, current: Any, qos: QosWant) -> Any:
    """What the value must become; None when it is as wanted or not managed. Unknown is never as wanted."""
    wanted = _wanted(name, qos)
    if wanted is None or _fits(name, current, wanted):
        return None
    return _target(name, current, wanted)


def _wanted(name: str, qos: QosWant) -> Any:
    if name == "pause":
        return (False, False) if qos.pfc else None
    if name == "trust":
        return "dscp"
    if name == "dscp_priority":
        return tuple(enumerate(qos.dscp_priority))
    if name in ("ecn_np", "ecn_rp"):
        return qos.ecn
    return getattr(qos, name)


def _fits(name: str, current: Any, wanted: Any) -> bool:
    if isinstance(current, Unknown):
        return False
    rule = _FITS.get(name)
    return rule(current, wanted) if rule is not None else bool(current == wanted)


def _same_dscp(current: Any, wanted: int) -> bool:
    """ToS bytes that differ only in their ECN bits select the same class: DSCP is the byte >> 2 (RFC 3168)."""
    return current is not ABSENT and current >> 2 == wanted >> 2


def _np_fits(current: Tuple[int, ...], wanted: Tuple[int, ...]) -> bool:
    """The notification point is port-wide: any priority enabled makes the port send CNPs."""
    return bool(current) == bool(wanted)


def _rp_fits(current: Tuple[int, ...], wanted: Tuple[int, ...]) -> bool:
    """The reaction point counts per priority: on for each wanted one; off altogether where none is wanted."""
    return set(wanted) <= set(current) if wanted else not current


_FITS: Dict[str, Callable[[Any, Any], bool]] = {
    "ecn_np": _np_fits,
    "ecn_rp": _rp_fits,
    "traffic_class": _same_dscp,
    "rdma_cm_tos": _same_dscp,
}


def _target(name: str, current: Any, wanted: Any) -> Any:
    if name == "ecn_rp" and wanted and isinstance(current, tuple):
        return tuple(sorted({*current, *wanted}))
    return wanted
