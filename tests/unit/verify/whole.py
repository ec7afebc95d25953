"""A node of which everything is wanted that a check is about, and all that read.sh prints of it while it is so."""

import ipaddress
import json

from gpufab_cli.reach.target import Target
from gpufab_cli.verify.expected import Card, Link, Node, Port
from tests.unit.core.mlnx_qos_outputs import class_lines, dscp_lines, port

from . import nodes, test_boot, test_dvfs, test_gpu_stack, test_links, test_mpi, test_numa, test_packages

PCI = "0000:18:00.0"
MAP = tuple({26: 3, 48: 6}.get(dscp, 0) for dscp in range(64))
TSA = ("ets",) * 6 + ("strict", "ets")
SHARES = (40, 0, 0, 60, 0, 0, 0, 0)
QOS = {
    "dscp_priority": MAP, "pfc": (3,), "prio_tc": tuple(range(8)), "tc_tsa": TSA, "tc_bw": SHARES, "cable_m": 7,
    "prio_buffer": (0, 0, 0, 1, 0, 0, 0, 0), "buffer_bytes": tuple(nodes.SIZES), "ecn": (3,), "cnp_dscp": 48,
    "cnp_priority": 6, "dcqcn": {"min_time_between_cnps": 4, "rpg_gd": None}, "traffic_class": 106, "rdma_cm_tos": 106,
    "rdma_cm_mode": "RoCE v2",
}  # fmt: skip
PORT = Port(
    "gpu01", "compute/0", PCI, "02:00:00:00:01:00", 9000, ipaddress.IPv6Address("::ffff:10.10.0.1"), QOS,
    ("bond0", "802.3ad"),
)  # fmt: skip
CARD = Card("gpu01", "compute/0", PCI, {"NUM_OF_VFS": "8", "CNP_DSCP": "48"}, {"MT_0000000838": "28.43.2026"})
VF = {"mac": "02:11:22:33:44:55", "vlan": 100, "trust": True, "link_state": "auto", "max_tx_mbps": 0}
WISHES = {
    "node": {}, "roce": {}, "links": {}, "firmware": {},
    "kernel": {"arguments": ["hugepages=4"], "iommu": "passthrough", "acs": True},
    "numa": test_numa.WISH, "dvfs": test_dvfs.WISH, **test_gpu_stack.WISHES, **test_mpi.WISHES,
    "ofed": test_packages.OFED, "nccl": test_packages.NCCL,
    "sriov": {"ports": [{"pci": PCI, "rail": "compute/0", "vfs": [VF]}]},
}  # fmt: skip
NODE = Node(
    Target("gpu01", "gpu01", None, None, None, "none", "/usr/bin/python3", "active"),
    WISHES,
    (PORT,),
    (Link("gpu01", "storage/0", PCI, True, "a0:88:c2:03:00:01:4a:00", 400), test_links.ETH),
    (CARD,),
)
BRIDGES = ("0000:17:00.0", "0000:17:02.0")
PATHS = [*test_numa.HEALTHY["paths"].splitlines(), *(f"{b}\t{test_numa.SWITCH}/{b}" for b in BRIDGES)]
FUNCTIONS = [*test_numa.FUNCTIONS.splitlines(), *(f"{b}\t0x060400\t0x1000\t0xc030" for b in BRIDGES)]
MLNX_QOS = port(
    dscps=dscp_lines(tuple(enumerate(MAP))), pfc=(0, 0, 0, 1, 0, 0, 0, 0), prio_buffer=(0, 0, 0, 1, 0, 0, 0, 0),
    buffers=",".join(map(str, nodes.SIZES)) + ",max_buffer_size=1027728", classes=class_lines(range(8), TSA, SHARES),
)  # fmt: skip
MASK = "Configurations:   Default   Current   Next Boot\n     ROCE_CC_PRIO_MASK_P1   255   0x8   255\n"
DEBUGFS = "np_cnp_dscp 48\nnp_cnp_prio 6\nnp_cnp_prio_mode 0\nnp_min_time_between_cnps 4"
BNXT = (
    "ecn_enable 0x1\necn_marking 0x2\nroce_prio 0x3\nroce_dscp 0x1a\ncnp_dscp 0x30\ncnp_prio 0x6\nmin_time_bet_cnp 0x4"
)
DCB, VENDOR = ("pfc", "dscp", "ets", "buffers"), ("np", "rp", "cnp", "dcqcn")
# What each stack shows in place of the sections of dcb and of the vendor's ecn/.
STACKS = {
    "dcb and the vendor's ecn": {},
    "mlnx_qos and cc_params": {
        **dict.fromkeys((*DCB, *VENDOR), ("absent", "")),
        "mlnx-qos": ("0", MLNX_QOS), "cc-params": ("0", DEBUGFS), "cc-mask": ("0", MASK),
    },
    "bnxt_re": {**dict.fromkeys((*VENDOR, "traffic-class"), ("absent", "")), "bnxt": ("0", BNXT)},
}  # fmt: skip


def sections(stack):
    """(code, text) by name."""
    shown = {**nodes.port(1, 0), "bond": ("0", "bond0\n802.3ad 4\nup"), **STACKS[stack]}
    found = {
        **{name: it for name, it in nodes.healthy(1, {}).items() if not name.startswith(("0000:", "desired"))},
        **{f"{PCI}/{name}": section for name, section in shown.items()},
        **texts("numa/", test_numa.HEALTHY), **texts("", test_dvfs.HEALTHY), **texts("", test_gpu_stack.HEALTHY),
        **texts("", test_mpi.HEALTHY), **texts("", test_packages.HEALTHY), **test_boot.GOOD,
        "cmdline": ("0", f"{test_boot.CMDLINE} pci=config_acs={test_numa.BOTH}"),
        "kernel-release": ("0", "6.15.2-generic"),
        "numa/managed": ("0", '["0000:c1:00.0 90"]'),
        "numa/paths": ("0", "\n".join(PATHS)),
        "numa/functions": ("0", "\n".join(FUNCTIONS)),
        "drivers": ("0", test_packages.HEALTHY["drivers"]),
        "hcas": ("0", test_links.HCA), "interfaces": ("0", test_links.INTERFACE),
        "functions": (
            "0",
            f"{PCI}\t1\t4: eth0: <UP> mtu 9000 \\    link/ether 02:00:00:00:01:00 brd ff:ff:ff:ff:ff:ff\\    vf 0     "
            "link/ether 02:11:22:33:44:55 brd ff:ff:ff:ff:ff:ff, vlan 100, spoof checking on, link-state auto, "
            "trust on",
        ),
    }  # fmt: skip
    found |= {f"desired/{name}.json": ("0", json.dumps({"want": wish})) for name, wish in NODE.kept.items()}
    card = test_boot.TABLE.format(48, 48).replace("CNP_DSCP_P1", "CNP_DSCP")
    return {**found, f"firmware/{PCI}": ("0", card)}


def texts(prefix, healthy):
    return {f"{prefix}{name}": ("0", said) if isinstance(said, str) else said for name, said in healthy.items()}
