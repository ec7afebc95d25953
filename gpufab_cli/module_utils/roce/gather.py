"""Look at the wanted RoCE ports of a node."""

import re
from dataclasses import replace
from typing import Any, Dict, Optional, Tuple, Union

from ..change import Unknown
from ..daemons import named
from ..devices import Devices, Nic
from ..host import Reader
from . import bnxt, bonds, gids, probe, sysfs
from .backend import Dcb, Port
from .seen import PortSeen, RoceSeen
from .want import QosWant, RoceWant


def gather(host: Reader, devices: Devices, want: RoceWant) -> RoceSeen:
    """Read every wanted Ethernet port that has exactly one netdev; what is wrong with the others the plan says."""
    places = [(port, devices.nic(port.pci)) for port in want.ports]
    fit = [(port, nic) for port, nic in places if nic is not None and is_candidate(nic)]
    dcbs = probe.dcb_backend(host).read(host, {_name(nic): _wants_buffers(want.qos[port.qos]) for port, nic in fit})
    ports = {port.pci: _port(host, devices, nic, want.qos[port.qos], dcbs[_name(nic)]) for port, nic in fit}
    for port, nic in fit:
        if port.bond is not None and nic.netdev is not None:
            ports[port.pci] = replace(ports[port.pci], bond=bonds.read(host, nic.netdev))
    return RoceSeen(ports, _lldpad(host))


def is_candidate(nic: Nic) -> bool:
    """Whether the function can be a RoCE port at all: InfiniBand ports, VFs and the baseboard's own are not."""
    infiniband = any(device.link_layer == "InfiniBand" for device in nic.rdma)
    return nic.netdev is not None and not nic.is_vf and not nic.nvswitch and not infiniband


def _name(nic: Nic) -> str:
    """The name of a candidate's one netdev."""
    return nic.netdev.name if nic.netdev is not None else ""


def _wants_buffers(qos: QosWant) -> bool:
    return qos.prio_buffer is not None or qos.buffer_bytes is not None


def _port(host: Reader, devices: Devices, nic: Nic, qos: QosWant, dcb: Dcb) -> PortSeen:
    owner = lag_owner(devices, nic)
    port = Port(nic.pci, _name(nic), nic.rdma[0].name if len(nic.rdma) == 1 else None)
    return PortSeen(
        pause=_pause(host, port.netdev),
        **{"dscp_priority" if name == "dscp" else name: value for name, value in vars(dcb).items()},
        **_congestion(host, port, nic.driver, qos),
        rdma_cm_tos=sysfs.read_rdma_cm_tos(host, port.rdma),
        rdma_cm_mode=sysfs.read_rdma_cm(host, port.rdma, "default_roce_mode"),
        lag_owner=owner.pci if owner is not None else "",
        gids=gids.read(host, owner.rdma[0].name if owner is not None else port.rdma),
    )


def lag_owner(devices: Devices, nic: Nic) -> Optional[Nic]:
    """The bonded function that holds the RDMA device of both, when this one has none of its own (RoCE LAG)."""
    if nic.rdma:
        return None
    return next((other for other in devices.bonded_with(nic) if len(other.rdma) == 1), None)


def _congestion(host: Reader, port: Port, driver: str, qos: QosWant) -> Dict[str, Any]:
    """ECN, CNP, DCQCN and the forced traffic class, which lives where its driver keeps it."""
    knobs = tuple(qos.dcqcn.wanted()) if qos.dcqcn is not None else ()
    backend = probe.congestion_backend(host, port, driver)
    found = backend.read(host, port, knobs) if backend is not None else probe.no_congestion(host, knobs)
    traffic_class, rules = sysfs.read_traffic_class(host, port.rdma)
    if backend is bnxt:
        traffic_class = bnxt.read_traffic_class(host, port)
    control = backend.CONTROL if backend is not None else "none"
    return {**vars(found), "control": control, "traffic_class": traffic_class, "traffic_class_rules": rules}


def _pause(host: Reader, netdev: str) -> Union[Tuple[bool, bool], Unknown]:
    """Global pause as ``ethtool -a`` prints it (ethtool.c, dump_pause)."""
    output = host.query("ethtool", "-a", netdev)
    if isinstance(output, Unknown):
        return output
    if output.rc != 0:
        return Unknown(f"ethtool -a {netdev}: {output.error}")
    found = dict(re.findall(r"^(RX|TX):[ \t]+(on|off)[ \t]*$", output.whole, re.MULTILINE))
    if set(found) != {"RX", "TX"}:
        return Unknown(f"ethtool -a {netdev}: printed what no known release prints")
    return found["RX"] == "on", found["TX"] == "on"


def _lldpad(host: Reader) -> Optional[str]:
    return next((process.pid for process in named(host, ("lldpad",))), None)
