"""The checks of interrupts, memory and PCI Express, each on a node as declared and where just that is wrong."""

import inspect

import pytest

from gpufab_cli.reach.target import Target
from gpufab_cli.verify import pci, test_boot, test_numa
from gpufab_cli.verify.compare import NOTHING, comparing
from gpufab_cli.verify.expected import Node
from gpufab_cli.verify.reading import Reading, Section, UnreadableError, _asked

PORT, GPU, OTHER = "0000:18:00.0", "0000:1b:00.0", "0000:9a:00.0"
SWITCH = "pci0000:15/0000:15:01.0/0000:16:00.0"
PATHS = {
    PORT: f"{SWITCH}/0000:17:00.0/{PORT}",
    GPU: f"{SWITCH}/0000:17:02.0/{GPU}",
    OTHER: f"pci0000:97/0000:97:01.0/{OTHER}",
}
WISH = {
    "ports": [{"pci": PORT, "rail": "compute/0"}, {"pci": OTHER, "rail": "compute/1"}],
    "nodes": 3,
    "irq": "local",
    "balancing": False,
    "zone_reclaim": 0,
    "transparent_hugepages": "madvise",
    "hugepages": {"2M": 64},
    "shared_subnet": {"arp_ignore": 1, "rp_filter": 2},
    "max_read_request": 4096,
    "use": "bare-metal",
    "set_acs": True,
}


def lspci(acs="SrcValid+ TransBlk- ReqRedir-", size=4096):
    control = f"\t\tACSCap:\tSrcValid+ TransBlk+ ReqRedir+ CmpltRedir+ UpstreamFwd+\n\t\tACSCtl:\t{acs}\n"
    bridges = [f"0000:{b} PCI bridge: x\n{control}" for b in ("15:01.0", "17:00.0", "17:02.0", "97:01.0")]
    bridges.append("0000:16:00.0 PCI bridge: x\n")
    ports = [
        f"{p} Infiniband controller: x\n\t\t\tMaxPayload 256 bytes, MaxReadReq {size} bytes\n" for p in (PORT, OTHER)
    ]
    return "\n".join((*bridges, *ports, f"{GPU} 3D controller: x\n"))


def addresses(*lines):
    """What ``ip -o -4 addr show`` prints."""
    pairs = [line.split() for line in ("lo 127.0.0.1/8", *lines)]
    return "\n".join(f"{n}: {name}    inet {text} scope global {name}" for n, (name, text) in enumerate(pairs, 1))


FUNCTIONS = f"{PORT}\t0x020000\t0x15b3\t0x1021\n{OTHER}\t0x020000\t0x15b3\t0x1021\n{GPU}\t0x030200\t0x10de\t0x2330"
REST = f"{OTHER}\t80\t56-111\t56"
HEALTHY = {
    "interrupts": f"{PORT}\t70\t0-55,112-167\t5\n{PORT}\t71\t0-55,112-167\t112\n0000:c1:00.0\t90\t56-111\t0\n" + REST,
    "managed": ("absent", ""),
    # node 2 has no CPUs, node 3 no memory
    "nodes": "node0\t0-55,112-167\t9\nnode1\t56-111\t9\nnode2\t\t9\nnode3\t168\t0",
    "numa_balancing": "0",
    "zone_reclaim_mode": "0",
    "transparent_hugepage": "always [madvise] never",
    "hugepages": "node0\t2048\t64\nnode0\t1048576\t0\nnode1\t2048\t64\nnode2\t2048\t0",
    "arp": "all\t0\t0\t2\nib0\t1\t2\t0\nib1\t1\t2\t2\nib2\t0\t0\t0",
    "addresses": addresses("ib0 198.51.100.1/24", "ib1 198.51.100.2/24", "ib2 10.0.0.1/24"),
    "netdevs": f"{PORT}\tib0\n{OTHER}\tib1\n0000:c1:00.0\tib2",
    "functions": FUNCTIONS,
    "paths": "\n".join(f"{address}\t{path}" for address, path in PATHS.items()),
    "lspci": lspci(),
}
CHECKS = {name.removeprefix("test_"): it for name, it in vars(test_numa).items() if name.startswith("test_")}


def outcomes(changed, **wish):
    target = Target("gpu01", "gpu01", None, None, None, "none", "/usr/bin/python3", "active")
    node = Node(target, {"numa": {**WISH, **wish}}, (), (), ())
    found = {name: ("0", it) if isinstance(it, str) else it for name, it in {**HEALTHY, **changed}.items()}
    sections = {f"numa/{name}": Section(f"numa/{name}", *it) for name, it in found.items()}
    reading = Reading({"uid": Section("uid", "0", "0"), **sections})
    said = {}
    for name, check in CHECKS.items():
        arguments = {"node": node, "reading": reading}
        try:
            with comparing():
                check(**{argument: arguments[argument] for argument in inspect.signature(check).parameters})
        except AssertionError as error:
            said[name] = str(error).splitlines()[0]
        except UnreadableError as error:
            said[name] = f"unknown: {error}"
    return said


def test_a_node_as_declared_passes_every_check():
    assert outcomes({}) == {}


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"interrupts": f"{PORT}\t70\t0-55\t56\n{REST}"},
            {"interrupts_are_local": f"{PORT}: interrupt 70 is on CPU 56, not 0-55"},
        ),
        ({"interrupts": f"{PORT}\t70\t0-55\t56\n{REST}", "managed": f'["{PORT} 70"]'}, {}),
        (
            {"interrupts": f"{PORT}\t70\t0-55\t56\n{REST}", "managed": f'["{OTHER} 70"]'},
            {"interrupts_are_local": f"{PORT}: interrupt 70 is on CPU 56, not 0-55"},
        ),
        ({"interrupts": f"{PORT}\t70\t\t56\n{REST}"}, {}),  # a node without CPUs: none is local
        ({"interrupts": REST}, {"interrupts_are_local": f"unknown: the kernel shows no interrupt of {PORT}"}),
        (
            {"nodes": "node0\t0-167\t9", "hugepages": "node0\t2048\t64"},
            {"nodes": "1 NUMA nodes have CPUs, wanted 3"},
        ),
        # What dash's `read` made of a real cpulist: no CPUs anywhere, and huge pages of no node compared.
        (
            {"nodes": "none"},
            {"nodes": "unknown: the kernel shows no NUMA node with CPUs", "hugepages": NOTHING},
        ),
        (
            {"nodes": "node0\t?\t9"},
            {
                "nodes": "unknown: list of CPUs: could not be read",
                "hugepages": "unknown: list of CPUs: could not be read",
            },
        ),
        ({"numa_balancing": "1"}, {"balancing": "numa_balancing is 1, wanted 0"}),
        ({"numa_balancing": ("absent", "")}, {}),
        ({"zone_reclaim_mode": ("1", "denied")}, {"zone_reclaim": "unknown: zone_reclaim_mode: denied"}),
        (
            {"transparent_hugepage": "[always] madvise never"},
            {"transparent_hugepages": "[always] madvise never, wanted madvise"},
        ),
        ({"hugepages": "node0\t2048\t63"}, {"hugepages": "node0 has 63 pages of 2M, wanted 64"}),
        ({"hugepages": "none"}, {"hugepages": "node0 has no pages of 2M, wanted 64"}),
        ({"hugepages": "node0\t2048\t?"}, {"hugepages": "unknown: huge pages of node0: could not be read"}),
        (
            {"arp": "all\t0\t0\t0\nib0\t1\t2\t0\nib1\t1\t2\t2"},
            {"shared_subnets": "ib0: rp_filter acts as 0, wanted 2"},
        ),
        # Two addresses of one interface share a subnet, and no port answers for another.
        (
            {
                "addresses": addresses("ib0 198.51.100.1/24", "ib0 198.51.100.9/24"),
                "arp": "all\t0\t0\t0\nib0\t0\t0\t0\nib1\t0\t0\t0",
            },
            {},
        ),
        # The address of a port that is in a bond is the bond's.
        (
            {
                "netdevs": f"{PORT}\tib0\n{PORT}\tbond0\n{OTHER}\tib1",
                "addresses": addresses("bond0 198.51.100.1/24", "ib1 198.51.100.2/24"),
                "arp": HEALTHY["arp"] + "\nbond0\t0\t0\t0",
            },
            {"shared_subnets": "bond0: arp_ignore acts as 0, wanted 1"},
        ),
        ({"netdevs": f"{PORT}\tib9"}, {"shared_subnets": "unknown: the kernel shows no ARP settings of ib9"}),
        ({"zone_reclaim_mode": ("absent", "")}, {}),
        ({"lspci": lspci(size=512)}, {"max_read_request": f"{PORT}: MaxReadReq is 512 bytes, wanted 4096"}),
        ({"lspci": lspci("SrcValid+ ReqRedir+")}, {"acs": "0000:17:00.0: ReqRedir on"}),
        (
            {"lspci": ("absent", "")},
            {"max_read_request": "unknown: lspci: not there", "acs": "unknown: lspci: not there"},
        ),
    ],
)
def test_what_is_wrong_is_said(changed, said):
    assert outcomes(changed) == said


def test_guests_need_isolation_on_every_bridge():
    assert outcomes({}, use="vms") == {"acs": "0000:15:01.0: CmpltRedir, ReqRedir, UpstreamFwd off"}
    every = lspci("SrcValid+ ReqRedir+ CmpltRedir+ UpstreamFwd+")
    assert outcomes({"lspci": every}, use="vms") == {}


def test_a_port_that_cannot_isolate_is_no_pass_for_guests_a_switch_s_upstream_port_need_not():
    every = lspci("SrcValid+ ReqRedir+ CmpltRedir+ UpstreamFwd+")
    port = "0000:16:00.0 PCI bridge: x\n\tCapabilities: [60] Express (v2) {}, IntMsgNum 0\n"
    for kind in ("Root Port (Slot+)", "Downstream Port (Slot-)", "Upstream Port"):
        shown = every.replace("0000:16:00.0 PCI bridge: x\n", port.format(kind))
        said = {} if kind == "Upstream Port" else {"acs": "0000:16:00.0 has no ACS: all below it is one group"}
        assert outcomes({"lspci": shown}, use="vms") == said


def test_bridges_between_two_are_those_of_their_switch():
    assert pci.between(PATHS, [GPU], [GPU, PORT, OTHER]) == {"0000:17:00.0", "0000:17:02.0"}


def test_only_a_node_that_is_to_have_it_is_asked():
    target = Target("gpu01", "gpu01", None, None, None, "none", "/usr/bin/python3", "active")
    assert list(_asked(Node(target, {"numa": WISH}, (), (), ()))) == ["numa"]


BOTH = "xx000xx@0000:15:01.0/00.0/00.0;xx000xx@0000:15:01.0/00.0/02.0"


@pytest.mark.parametrize(
    ("line", "release", "said"),
    [
        (f"quiet pci=noaer,config_acs={BOTH}", "6.15.2-generic", None),
        ("quiet pci=config_acs=xx000xx@pci:1000:c030", "6.15.2-generic", None),
        (f"pci=config_acs=1@pci:1:2 pci=config_acs={BOTH}", "6.8.0", None),  # the last one counts
        (f"pci=config_acs={BOTH} pci=config_acs=1@pci:1:2", "6.15.0", "pci=config_acs does not name 0000:17:00.0"),
        (
            f"pci=config_acs={BOTH.partition(';')[0]}",
            "6.15.0",
            "pci=config_acs does not name 0000:17:02.0",
        ),  # cut short
        ("quiet pci=noaer", "7.0.0", "kernel 7.0.0 was started without pci=config_acs"),
        ("quiet", "6.8.0-60-generic", None),  # it has no such argument
    ],
)
def test_a_kernel_that_sets_acs_was_told_of_each_bridge(line, release, said):
    target = Target("gpu01", "gpu01", None, None, None, "none", "/usr/bin/python3", "active")
    texts = {f"numa/{name}": it for name, it in HEALTHY.items() if isinstance(it, str)}
    every = "\n".join(f"{path.split('/')[-1]}\t{path}" for path in (f"{SWITCH}/0000:17:00.0", f"{SWITCH}/0000:17:02.0"))
    texts |= {"cmdline": line, "kernel-release": release, "numa/paths": f"{HEALTHY['paths']}\n{every}", "uid": "0"}
    bridges = "\n".join(f"{bridge}\t0x060400\t0x1000\t0xc030" for bridge in ("0000:17:00.0", "0000:17:02.0"))
    texts["numa/functions"] = f"{FUNCTIONS}\n{bridges}"
    reading = Reading({name: Section(name, "0", text) for name, text in texts.items()})
    node = Node(target, {"numa": WISH, "kernel": {}}, (), (), ())
    if said is None:
        test_boot.test_kernel_acs(node, reading)
        return
    with pytest.raises((AssertionError, pytest.fail.Exception), match=said):
        test_boot.test_kernel_acs(node, reading)
