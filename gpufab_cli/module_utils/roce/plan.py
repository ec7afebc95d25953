"""Decide what would change on the RoCE ports of a node. Pure: one lossless class on one port is one step."""

from typing import List

from .. import identity
from ..change import Finding, Plan, Step
from ..devices import Netdev, Nic
from ..snapshot import Snapshot
from . import settings
from .findings import findings, short_buffers, unfit
from .seen import PortSeen, RoceSeen
from .want import PortWant, RoceWant

FEATURE = "roce"


def plan(snapshot: Snapshot, want: RoceWant) -> Plan:
    """One step a port that differs, and a finding for whatever is not gpufab's to change."""
    seen: RoceSeen = snapshot.seen[FEATURE]
    steps: List[Step] = []
    found: List[Finding] = []
    for port in want.ports:
        nic = snapshot.devices.nic(port.pci)
        problem = unfit(snapshot.devices, port, nic)
        if problem is not None or nic is None:
            found += [problem] if problem is not None else []
            continue
        found += findings(snapshot.devices, want, port, seen.ports[port.pci])
        step = _step(port, nic, seen, want)
        steps += [step] if step.changes else []
    if seen.lldpad is not None:
        found.append(Finding("foreign.lldpad", ("lldpad",), f"lldpad runs as process {seen.lldpad}"))
    return Plan(tuple(steps), findings=tuple(found))


def _step(port: PortWant, nic: Nic, seen: RoceSeen, want: RoceWant) -> Step:
    state, take_dcbx = seen.ports[port.pci], "dcbx" in (want.takeover or ())
    changes = tuple(settings.changes(port.pci, state, want.qos[port.qos], take_dcbx=take_dcbx))
    impact = frozenset().union(*(settings.impact(change.path[1]) for change in changes))
    netdev = nic.netdev
    if netdev is None:  # the identity check has refused it
        return Step(f"{FEATURE} {port.rail}", ())
    blocked = _blocked(port, netdev, seen, want)
    return Step(f"{FEATURE} {port.rail}", changes, impact | identity.management(netdev), port.pci, blocked)


def _blocked(port: PortWant, netdev: Netdev, seen: RoceSeen, want: RoceWant) -> str:
    """What forbids the step whatever is consented to, the first reason there is."""
    state = seen.ports[port.pci]
    if seen.lldpad is not None:
        return f"lldpad (process {seen.lldpad}) owns the port's DCB settings"
    if state.dcbx == "firmware" and "dcbx" not in (want.takeover or ()):
        return f"DCBX in the firmware of {netdev.name} owns the port's DCB settings"
    return identity.undecidable(netdev) or _impossible(port, netdev, state, want)


def _impossible(port: PortWant, netdev: Netdev, state: PortSeen, want: RoceWant) -> str:
    qos = want.qos[port.qos]
    if state.control == "bnxt" and len(qos.ecn or ()) > 1:
        return f"{netdev.name} has one RoCE priority, the profile wants ECN on {len(qos.ecn or ())}"
    return short_buffers(port, netdev, state, qos)
