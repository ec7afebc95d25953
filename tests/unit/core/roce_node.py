"""A RoCE port in memory, to plan on."""

from dataclasses import replace

from gpufab_cli.module_utils.change import ABSENT
from gpufab_cli.module_utils.devices import Devices, Netdev, Nic, RdmaDevice
from gpufab_cli.module_utils.roce.knobs import DcqcnWant
from gpufab_cli.module_utils.roce.seen import PortSeen, RoceSeen
from gpufab_cli.module_utils.roce.want import PortWant, QosWant, RoceWant
from gpufab_cli.module_utils.snapshot import Snapshot

PCI = "0000:18:00.0"
OTHER = "0000:2a:00.0"
MAP = tuple(3 if dscp == 26 else 6 if dscp == 48 else 0 for dscp in range(64))

QOS = QosWant(
    dscp_priority=MAP,
    pfc=(3,),
    prio_tc=(0, 1, 2, 3, 4, 5, 6, 7),
    tc_tsa=("ets", "ets", "ets", "ets", "ets", "ets", "strict", "ets"),
    tc_bw=(50, 0, 0, 50, 0, 0, 0, 0),
    ecn=(3,),
    cnp_dscp=48,
    cnp_priority=6,
    traffic_class=106,
    rdma_cm_tos=106,
    rdma_cm_mode="RoCE v2",
)

BUFFERS = (0, 0, 0, 1, 0, 0, 0, 0)
SIZES = (200_000, 200_000, 0, 0, 0, 0, 0, 0)
FULL = replace(
    QOS,
    cable_m=7,
    prio_buffer=BUFFERS,
    buffer_bytes=SIZES,
    dcqcn=DcqcnWant(rpg_ai_rate=10, min_time_between_cnps=2),
)
"""The same with everything that is optional."""

FACTORY = PortSeen(
    pause=(True, True),
    trust="pcp",
    dscp_priority=(),
    pfc=(),
    prio_tc=(1, 0, 2, 3, 4, 5, 6, 7),
    tc_tsa=("vendor",) * 8,
    tc_bw=(0,) * 8,
    ecn_np=tuple(range(8)),
    ecn_rp=tuple(range(8)),
    cnp_dscp=48,
    cnp_priority=6,
    traffic_class=ABSENT,
    rdma_cm_tos=ABSENT,
    rdma_cm_mode=ABSENT,
)

GOOD = PortSeen(
    pause=(False, False),
    trust="dscp",
    dscp_priority=tuple(enumerate(MAP)),
    pfc=(3,),
    prio_tc=QOS.prio_tc,
    tc_tsa=QOS.tc_tsa,
    tc_bw=QOS.tc_bw,
    ecn_np=(3,),
    ecn_rp=(3,),
    cnp_dscp=48,
    cnp_priority=6,
    traffic_class=106,
    rdma_cm_tos=106,
    rdma_cm_mode="RoCE v2",
)

FULL_GOOD = replace(
    GOOD,
    cable_m=7,
    prio_buffer=BUFFERS,
    buffer_bytes=SIZES,
    dcqcn={"rpg_ai_rate": 10, "min_time_between_cnps": 2},
)


def nic(pci=PCI, name="ens18np0", mac="02:00:00:00:18:00", **changes):
    netdev = Netdev(name, mac, 9000, "up", 400000, ("10.10.0.1/24",), changes.pop("carries", ()))
    own = {"mtu", "operstate", "addresses", "uppers", "speed_mbps"} & set(changes)
    netdev = replace(netdev, **{key: changes.pop(key) for key in own})
    rdma = RdmaDevice("mlx5_0", "", "Ethernet", "ACTIVE", "400 Gb/sec (4X NDR)")
    base = Nic(pci, "mlx5_core", "0x15b3", "0x1021", 0, False, "MT1", "MT_0000000838", "28.43.2026", (netdev,), (rdma,))
    return replace(base, **changes)


def want(qos=QOS, takeover=None, **port):
    defaults = {
        "rail": "compute/0",
        "pci": PCI,
        "qos": "dcqcn",
        "mac": "02:00:00:00:18:00",
        "serial": "MT1",
        "mtu": 9000,
        "address": "10.10.0.1/24",
    }
    return RoceWant({"dcqcn": qos}, (PortWant(**{**defaults, **port}),), takeover)


def snapshot(port=GOOD, nics=None, lldpad=None, **changes):
    found = {PCI: replace(port, **changes)}
    return Snapshot("boot-1", 0, Devices(tuple(nics or (nic(),))), {"roce": RoceSeen(found, lldpad)})
