"""The RDMA ports that NCCL and MPI are told of: their devices' names now, and whether their class is lossless yet.

Names such as ``mlx5_0`` differ from host to host and change with udev rules and drivers; the lock knows PCI addresses.
A traffic class is announced only where the NIC's map leads it to the class that the fabric declares.
"""

import re
from dataclasses import dataclass, replace
from typing import Annotated, Dict, Iterator, Literal, Optional, Tuple, Union

from . import identity
from .change import ABSENT, Finding, Step, Unknown
from .devices import INFINIBAND, Devices, Nic
from .host import Reader
from .roce import gids, probe
from .roce.gather import is_candidate, lag_owner
from .roce.seen import DscpEntries, Gid, Priorities
from .schema import Doc, Guid, MacAddress, Pattern, PciAddress, Priority, TrafficClass

_LISTABLE = re.compile(r"[A-Za-z0-9_.@+-]+")
"""The kernel takes others too: they would end a list, or stand in Slurm's task prolog as words of the shell."""


@dataclass(frozen=True)
class RailWant:
    """One RDMA port, pinned by the lock."""

    rail: Annotated[str, Doc("Name of the port in the fabric, network/rail, such as compute/3.")]
    pci: Annotated[PciAddress, Doc("PCI address of the port's function.")]
    transport: Annotated[Literal["roce", "infiniband"], Doc("What the port's network carries.")]
    mac: Annotated[Optional[MacAddress], Doc("Permanent MAC address of an Ethernet port.")] = None
    guid: Annotated[Optional[Guid], Doc("Node GUID of an InfiniBand port.")] = None
    serial: Annotated[Optional[str], Doc("Serial number of the card.")] = None
    psid: Annotated[Optional[str], Doc("Board id (PSID) of the card's firmware.")] = None
    address: Annotated[
        Optional[Annotated[str, Pattern(r"[0-9a-f.:]{2,45}/\d{1,3}", "an address such as 10.10.3.7/24")]],
        Doc("IP address with prefix length that the site sets; its GID is the one to use."),
    ] = None


@dataclass(frozen=True)
class ClassWant:
    """The class of RoCE traffic that the fabric declares first."""

    traffic_class: Annotated[TrafficClass, Doc("Traffic class byte to send with: DSCP << 2 | ECN bits.")]
    priority: Annotated[Priority, Doc("Priority that its DSCP leads to.")]
    pfc: Annotated[bool, Doc("Whether PFC protects that priority.")]


@dataclass(frozen=True)
class RailSeen:
    """What decides where a RoCE port's traffic goes, and the port's GIDs."""

    trust: Union[str, Unknown]
    dscp_priority: DscpEntries
    pfc: Priorities
    gids: Union[Tuple[Gid, ...], Unknown]


def gather(host: Reader, devices: Devices, rails: Tuple[RailWant, ...]) -> Dict[str, RailSeen]:
    """Look at the RoCE ports among them, by PCI address."""
    pcis = [rail.pci for rail in rails if rail.transport == "roce"]
    nics = {nic.netdev.name: nic for nic in map(devices.nic, pcis) if nic and nic.netdev and is_candidate(nic)}
    dcbs = probe.dcb_backend(host).read(host, dict.fromkeys(nics, False)) if nics else {}
    return {
        nic.pci: RailSeen(dcbs[name].trust, dcbs[name].dscp, dcbs[name].pfc, gids.read(host, rdma_name(devices, nic)))
        for name, nic in nics.items()
    }


def device_ports(host: Reader, devices: Devices) -> Dict[str, Tuple[str, ...]]:
    """The ports of every RDMA device by its name; one that shows none is left out."""
    names = [device.name for nic in devices.nics for device in nic.rdma]
    found = {name: host.names(f"{INFINIBAND}/{name}/ports") for name in names}
    return {name: ports for name, ports in found.items() if isinstance(ports, tuple)}


def rdma_name(devices: Devices, nic: Nic) -> Optional[str]:
    """The one RDMA device of a port; that of the bond where the bonded function has it."""
    owner = lag_owner(devices, nic) or nic
    return owner.rdma[0].name if len(owner.rdma) == 1 else None


def names(devices: Devices, rails: Tuple[RailWant, ...]) -> Union[Tuple[str, ...], Finding]:
    """The RDMA devices of the rails in their order, each once; what is wrong with the first that has none."""
    found: Dict[str, None] = {}
    for rail in rails:
        nic = devices.nic(rail.pci)
        wrong = identity.problem(devices, rail, nic, rail.guid)
        if wrong is not None or nic is None:
            return wrong or Finding("device.missing", (rail.pci, rail.rail), "nothing there")
        name = rdma_name(devices, nic)
        if name is None:
            return Finding("device.missing", (rail.pci, rail.rail), f"{len(nic.rdma)} RDMA devices there, not one")
        if not _LISTABLE.fullmatch(name):
            return Finding("device.missing", (rail.pci, rail.rail), f"{name!r} is no name for a list of devices")
        found[name] = None
    return tuple(found)


def interfaces(devices: Devices, given: Tuple[str, ...], ports: Tuple[str, ...]) -> Union[Tuple[str, ...], Finding]:
    """Interfaces given by name, and those of ports given by PCI address; what is wrong with the first without one."""
    found = list(given)
    for pci in ports:
        nic = devices.nic(pci)
        if nic is None or nic.netdev is None:
            return Finding("device.missing", (pci,), "no netdev there, and sockets are to use it")
        if not _LISTABLE.fullmatch(nic.netdev.name):
            return Finding("device.missing", (pci,), f"{nic.netdev.name!r} is no name for a list of interfaces")
        found.append(nic.netdev.name)
    return tuple(found)


def unready(
    rails: Tuple[RailWant, ...], seen: Dict[str, RailSeen], wanted: ClassWant
) -> Iterator[Tuple[RailWant, Union[str, Unknown]]]:
    """The RoCE ports that do not carry the traffic class losslessly, and why; Unknown where that cannot be told."""
    for rail in rails:
        if rail.transport == "roce":
            why = _unready(seen.get(rail.pci), wanted) if rail.pci in seen else "the port is not there"
            if why:
                yield rail, why


def waiting(
    step: Step,
    name: str,
    rails: Tuple[RailWant, ...],
    seen: Dict[str, RailSeen],
    wanted: Optional[ClassWant],
) -> Step:
    """The step, held back where it would announce a traffic class (the setting ``name``) that is not lossless yet."""
    announces = any(change.path[1] == name and change.desired is not ABSENT for change in step.changes)
    if wanted is None or not announces or step.blocked:
        return step
    for rail, why in unready(rails, seen, wanted):
        if isinstance(why, Unknown):
            changes = (replace(c, current=why) if c.path[1] == name else c for c in step.changes)
            return replace(step, changes=tuple(changes))
        waits = f"{name}={wanted.traffic_class} waits for feature roce: {rail.rail}: {why}"
        return replace(step, blocked=f"{waits}; a run in which roce mends that writes it too")
    return step


def _unready(port: Optional[RailSeen], wanted: ClassWant) -> Union[str, Unknown]:
    if port is None:
        return "the port is not there"
    for value in (port.trust, port.dscp_priority, port.pfc):
        if isinstance(value, Unknown):
            return value
    priorities = leads_to(port, wanted.traffic_class)
    if priorities != (wanted.priority,):
        return f"DSCP {wanted.traffic_class >> 2} leads to priority {_listed(priorities)}, not {wanted.priority}"
    if wanted.pfc and not protects(port, wanted.priority):
        return f"PFC is off for priority {wanted.priority}"
    return ""


def leads_to(port: RailSeen, traffic_class: int) -> Tuple[int, ...]:
    """The priorities that the port's map gives a traffic class: none where it trusts no DSCP."""
    if port.trust != "dscp" or isinstance(port.dscp_priority, Unknown):
        return ()
    return tuple(priority for dscp, priority in port.dscp_priority if dscp == traffic_class >> 2)


def protects(port: RailSeen, priority: int) -> bool:
    """Whether PFC is on for a priority."""
    return isinstance(port.pfc, tuple) and priority in port.pfc


def astray(port: RailSeen, traffic_class: int, wanted: ClassWant) -> Union[str, Unknown]:
    """Where else than to a lossless priority the port's map leads a traffic class, in words; "" where it does not."""
    for value in (port.trust, port.dscp_priority, port.pfc):
        if isinstance(value, Unknown):
            return value
    priorities = leads_to(port, traffic_class)
    if port.trust != "dscp":
        return "leads to no priority: the port does not trust DSCP"
    if not priorities:
        return "leads to no priority: the port's map has no such DSCP"
    if not wanted.pfc and priorities == (wanted.priority,):
        return ""
    lossy = [priority for priority in priorities if not protects(port, priority)]
    return f"leads to priority {_listed(tuple(lossy))}, not lossless" if lossy else ""


def _listed(priorities: Tuple[int, ...]) -> str:
    return ", ".join(map(str, priorities)) or "none"
