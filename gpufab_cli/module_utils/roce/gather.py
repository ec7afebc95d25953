"""Look at the wanted RoCE ports of a node."""

import re
from typing import Optional, Tuple, Union

from ..change import Unknown
from ..devices import Devices
from ..host import Reader
from ..processes import processes
from . import dcb, sysfs
from .seen import PortSeen, RoceSeen
from .want import RoceWant


def gather(host: Reader, devices: Devices, want: RoceWant) -> RoceSeen:
    """Read every wanted port that has exactly one netdev; what is wrong with the others is the plan's to say."""
    ports = {}
    for port in want.ports:
        nic = devices.nic(port.pci)
        if nic is not None and nic.netdev is not None and not nic.is_vf:
            rdma = nic.rdma[0].name if len(nic.rdma) == 1 else None
            ports[port.pci] = _port(host, nic.netdev.name, rdma)
    return RoceSeen(ports, _lldpad(host))


def _port(host: Reader, netdev: str, rdma: Optional[str]) -> PortSeen:
    dscp = dcb.read_dscp(host, netdev)
    ets = dcb.read_ets(host, netdev)
    prio_tc, tc_tsa, tc_bw = (ets, ets, ets) if isinstance(ets, Unknown) else ets
    traffic_class, rules = sysfs.read_traffic_class(host, rdma)
    return PortSeen(
        pause=_pause(host, netdev),
        trust=dscp if isinstance(dscp, Unknown) else "dscp" if dscp else "pcp",
        dscp_priority=dscp,
        pfc=dcb.read_pfc(host, netdev),
        prio_tc=prio_tc,
        tc_tsa=tc_tsa,
        tc_bw=tc_bw,
        ecn_np=sysfs.read_enabled(host, netdev, "roce_np"),
        ecn_rp=sysfs.read_enabled(host, netdev, "roce_rp"),
        cnp_dscp=sysfs.read_cnp(host, netdev, "cnp_dscp"),
        cnp_priority=sysfs.read_cnp(host, netdev, "cnp_802p_prio"),
        traffic_class=traffic_class,
        rdma_cm_tos=sysfs.read_rdma_cm_tos(host, rdma),
        rdma_cm_mode=sysfs.read_rdma_cm(host, rdma, "default_roce_mode"),
        traffic_class_rules=rules,
    )


def _pause(host: Reader, netdev: str) -> Union[Tuple[bool, bool], Unknown]:
    """Global pause as ``ethtool -a`` prints it (ethtool.c, dump_pause)."""
    output = host.query("ethtool", "-a", netdev)
    if isinstance(output, Unknown):
        return output
    if output.rc != 0:
        return Unknown(f"ethtool -a {netdev}: {output.error}")
    found = dict(re.findall(r"^(RX|TX):\s+(on|off)\s*$", output.stdout, re.MULTILINE))
    if set(found) != {"RX", "TX"}:
        return Unknown(f"ethtool -a {netdev}: printed what no known release prints")
    return found["RX"] == "on", found["TX"] == "on"


def _lldpad(host: Reader) -> Optional[str]:
    return next((process.pid for process in processes(host) if process.name == "lldpad"), None)
