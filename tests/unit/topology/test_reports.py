"""Machines that people reported: matrices and files as they came, with the right verdict."""

from dataclasses import replace

import pytest

from gpufab_cli.errors import GpufabError
from gpufab_cli.module_utils.devices import Devices, RdmaDevice
from gpufab_cli.module_utils.topology.numa import Numa, NumaNode
from gpufab_cli.topology import matrix, nccl_xml, text
from gpufab_cli.topology.findings import findings
from gpufab_cli.topology.layout import layout
from gpufab_cli.topology.roles import Role
from tests.unit.core.test_topology import TWO, gpu, nic

TAIL = "\t0-55,112-167\t0\t\tN/A"


def table(head, *rows):
    return "\n".join(["\t" + head.replace(" ", "\t"), *("\t".join(row.split()) for row in rows)])


def read(text):
    return matrix.rebuilt("pasted", matrix.parse(text))


def owners(found):
    return [(found.gpu_name(i.gpu), found.port_of(i.nic).name) for i in found.rails.pairing.pairs]


def codes(found):
    return [(item.code, item.device) for item in findings(found)]


def test_report_26_nps4_with_its_last_rows_cut_off():
    """Two GPUs share a NIC behind nested switches; the row of GPU3 and those of NICs are missing."""
    found = read(
        "        GPU0    GPU1    GPU2    GPU3    NIC0    NIC1    NIC2    CPU Affinity    NUMA Affinity   GPU NUMA ID\n"
        "GPU0     X      NV12    NV12    NV12    SYS     PXB     SYS     24-31,88-95     3               N/A\n"
        "GPU1    NV12     X      NV12    NV12    SYS     PXB     SYS     24-31,88-95     3               N/A\n"
        "GPU2    NV12    NV12     X      NV12    PXB     SYS     SYS     8-15,72-79      1               N/A\n"
    )
    assert owners(found) == [("GPU0", "NIC1"), ("GPU1", "NIC1"), ("GPU2", "NIC0")]
    assert [port.role for port in found.ports] == [Role.RAIL, Role.RAIL, None]
    assert codes(found) == [("topo.place-unknown", "GPU3")]
    assert found.cell("GPU3", "GPU0") == "NV12"  # by the row of GPU0
    assert found.cell("NIC0", "NIC1") == "?"
    assert found.devices.numa.local(found.gpus[0].numa_node).cpus == "24-31,88-95"


def test_report_28_nics_on_one_socket_leave_two_gpus_without_a_rail_of_their_own():
    found = read(
        "        GPU0 GPU1 GPU2 GPU3 NIC0 NIC1 CPU Affinity NUMA Affinity GPU NUMA ID\n"
        "GPU0 X NODE SYS SYS SYS SYS 0-95,192-287 0 N/A\n"
        "GPU1 NODE X SYS SYS SYS SYS 0-95,192-287 0 N/A\n"
        "GPU2 SYS SYS X NODE NODE NODE 96-191,288-383 1 N/A\n"
        "GPU3 SYS SYS NODE X NODE NODE 96-191,288-383 1 N/A\n"
        "NIC0 SYS SYS NODE NODE X PIX\nNIC1 SYS SYS NODE NODE PIX X\n\n"
        "NIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n"
    )
    assert owners(found) == [("GPU2", "mlx5_0"), ("GPU3", "mlx5_1")]
    assert codes(found) == [("topo.remote-rail", "GPU0"), ("topo.remote-rail", "GPU1")]
    assert {item.severity.value for item in findings(found)} == {"warning"}


def test_report_32_a_gpu_that_lost_nvlink_is_named_and_keeps_its_rail():
    found = read(
        table(
            "GPU0 GPU1 GPU2 NIC0 NIC1 NIC2",
            "GPU0 X NV18 NODE PXB NODE NODE 0-55 0 N/A",
            "GPU1 NV18 X NODE NODE PXB NODE 0-55 0 N/A",
            "GPU2 NODE NODE X NODE NODE PXB 0-55 0 N/A",
        )
    )
    assert owners(found) == [("GPU0", "NIC0"), ("GPU1", "NIC1"), ("GPU2", "NIC2")]
    (finding,) = findings(found)
    assert (finding.code, finding.device, finding.severity.value) == ("topo.nvlink", "GPU2", "critical")
    assert finding.evidence == "no NVLink to any GPU, the others have NV18"


def test_report_32_a_row_that_was_cut_off_is_not_known_whatever_a_gpu_off_nvlink_says_of_it():
    found = read(
        table(
            "GPU0 GPU1 GPU2 GPU3 NIC0 NIC1 NIC2 NIC3",
            "GPU0 X NV18 NODE NV18 PXB NODE SYS SYS 0-55 0 N/A",
            "GPU1 NV18 X SYS NV18 SYS SYS PXB NODE 56-111 1 N/A",
            "GPU2 NODE SYS X SYS NODE PXB SYS SYS 0-55 0 N/A",
        )
    )
    assert owners(found) == [("GPU0", "NIC0"), ("GPU1", "NIC2"), ("GPU2", "NIC1")]
    assert codes(found) == [("topo.nvlink", "GPU2"), ("topo.place-unknown", "GPU3")]


def test_fewer_links_than_the_others_have_is_told_too():
    found = read(
        table(
            "GPU0 GPU1 GPU2 GPU3",
            "GPU0 X NV18 NV18 NV16",
            "GPU1 NV18 X NV18 NV16",
            "GPU2 NV18 NV18 X NV16",
            "GPU3 NV16 NV16 NV16 X",
        )
    )
    assert [item.evidence for item in findings(found)] == ["NV16 at most, the others have NV18"]


def test_pairs_of_bridged_gpus_miss_nothing():
    found = read(
        table(
            "GPU0 GPU1 GPU2 GPU3",
            "GPU0 X NV12 SYS SYS",
            "GPU1 NV12 X SYS SYS",
            "GPU2 SYS SYS X NV12",
            "GPU3 SYS SYS NV12 X",
        )
    )
    assert findings(found) == ()


def test_nearness_alone_does_not_tell_a_rail_from_storage_on_its_switch():
    text = table("GPU0 GPU1 NIC0 NIC1 NIC2 NIC3", "GPU0 X NV18 PIX PIX PIX NODE", "GPU1 NV18 X NODE NODE NODE PIX")
    assert codes(read(text)) == [("topo.ambiguous-rail", "GPU0")]


def switch(root, port):
    return (f"pci0000:{root}", f"0000:{root}:01.0", f"0000:{root}:02.0", f"0000:{root}:0{port}.0")


def port(number, above, layer, state, rate, *, numa=0):
    rdma = RdmaDevice(f"mlx5_{number}", "", layer, state, rate)
    return replace(nic(f"0000:{number + 16}:00.0", above, numa), rdma=(rdma,))


def test_report_25_eight_rails_among_twelve_ports_on_the_same_switches():
    """Three ports are as near to GPU0 and GPU4 as can be; only one of each three is a rail."""
    roots = ("15", "26", "37", "48", "97", "a8", "b9", "ca")
    at = {0: 0, 1: 0, 2: 0, 3: 1, 4: 2, 5: 3, 6: 4, 7: 4, 8: 4, 9: 5, 10: 6, 11: 7}
    spare = {1: ("DOWN", "40 Gb/sec (4X QDR)"), 2: ("DOWN", "40 Gb/sec (4X QDR)")}
    spare |= dict.fromkeys((7, 8), ("ACTIVE", "100 Gb/sec (4X EDR)"))
    nics = tuple(
        port(n, switch(roots[g], n % 3 + 3), "Ethernet", *spare[n], numa=g // 4)
        if n in spare
        else port(n, switch(roots[g], n % 3 + 3), "InfiniBand", "ACTIVE", "400 Gb/sec (4X NDR)", numa=g // 4)
        for n, g in at.items()
    )
    gpus = tuple(gpu(f"0000:{root}:10.0", switch(root, 6), n // 4) for n, root in enumerate(roots))
    found = layout("reported", Devices(nics, gpus, TWO))
    rails = (0, 3, 4, 5, 6, 9, 10, 11)
    assert owners(found) == [(f"GPU{g}", f"mlx5_{n}") for g, n in enumerate(rails)]
    roles = {item.name: item.role.value for item in found.ports if item.role is not Role.RAIL}
    assert roles == {"mlx5_1": "unused", "mlx5_2": "unused", "mlx5_7": "storage", "mlx5_8": "storage"}
    assert findings(found) == ()


def test_report_32_ports_that_are_near_no_gpu_are_no_rails():
    """Rows of six GPUs out of eight, GPU2 off NVLink; of twelve NICs the last four are near no GPU of their socket."""

    def row(number):
        def far(same):
            return "NODE" if same else "SYS"

        here = number < 4  # on the first socket
        links = [far(here == (o < 4)) if 2 in (number, o) else "NV18" for o in range(8)]
        near = ["PXB" if n == number else far(here == (n < 4)) for n in range(8)]
        rest = [far(here == (n in (8, 9))) for n in range(8, 12)]
        cells = [*links[:number], "X", *links[number + 1 :], *near, *rest]
        return " ".join([f"GPU{number}", *cells, "0-55" if here else "56-111", str(int(not here)), "N/A"])

    head = " ".join([*(f"GPU{g}" for g in range(8)), *(f"NIC{n}" for n in range(12))])
    found = read(table(head, *map(row, range(6))))
    assert owners(found) == [(f"GPU{g}", f"NIC{g}") for g in range(6)]
    assert [item.name for item in found.ports if item.role is Role.RAIL] == [f"NIC{n}" for n in range(6)]
    assert codes(found)[0] == ("topo.nvlink", "GPU2")


def test_link_layer_state_and_rate_tell_it():
    nics = (
        port(0, switch("15", 3), "InfiniBand", "ACTIVE", "400 Gb/sec (4X NDR)"),
        port(1, switch("15", 4), "Ethernet", "DOWN", "40 Gb/sec (4X QDR)"),
        port(2, switch("15", 5), "Ethernet", "DOWN", "40 Gb/sec (4X QDR)"),
        port(3, switch("97", 3), "InfiniBand", "ACTIVE", "400 Gb/sec (4X NDR)", numa=1),
        port(4, switch("97", 4), "Ethernet", "ACTIVE", "100 Gb/sec (4X EDR)", numa=1),
    )
    gpus = (gpu("0000:1b:00.0", switch("15", 6)), gpu("0000:9b:00.0", switch("97", 6), 1))
    found = layout("reported", Devices(nics, gpus, TWO))
    assert owners(found) == [("GPU0", "mlx5_0"), ("GPU1", "mlx5_3")]
    assert [item.role.value for item in found.ports] == ["rail", "unused", "unused", "rail", "storage"]
    assert findings(found) == ()


def test_a_port_that_the_node_itself_needs_is_management():
    def carrying(number, *uses):
        from gpufab_cli.module_utils.devices import Netdev

        device = port(number, switch("15", number), "Ethernet", "ACTIVE", "100 Gb/sec")
        return replace(device, netdevs=(Netdev(f"eth{number}", "", 1500, "up", 100_000, (), uses),))

    nics = (carrying(3), carrying(4, "ssh"), carrying(5, "storage"))
    found = layout("x", Devices(nics[:2], (gpu("0000:1b:00.0", switch("15", 6)),), TWO))
    assert [item.role.value for item in found.ports] == ["rail", "management"]
    locked = layout("x", Devices(nics, (gpu("0000:1b:00.0", switch("15", 6)),), TWO), {nics[0].pci: "compute/0"})
    assert [(item.role.value, item.rail) for item in locked.ports] == [
        ("rail", "compute/0"),
        ("management", ""),
        ("storage", ""),
    ]


def test_several_nodes_and_a_device_of_none_of_them():
    nics = (port(0, ("pci0000:15", "0000:15:01.0"), "InfiniBand", "ACTIVE", "400 Gb/sec", numa=-1),)
    found = layout("x", Devices(nics, (gpu("0000:1b:00.0", switch("97", 6), 1),), TWO))
    assert found.rails.pairing.pairs == found.rails.pairing.remote == ()
    one = Numa((NumaNode(0, "0-7"),))
    assert owners(layout("x", Devices(nics, (gpu("0000:1b:00.0", switch("97", 6), -1),), one))) == [("GPU0", "mlx5_0")]


def test_a_gpu_whose_own_nic_is_missing_is_told():
    nics = (port(0, switch("15", 3), "InfiniBand", "ACTIVE", "400 Gb/sec"),)
    gpus = (gpu("0000:1b:00.0", switch("15", 6)), gpu("0000:3b:00.0", switch("35", 6)))
    found = layout("x", Devices(nics, gpus, TWO))
    assert [(item.device, item.evidence) for item in findings(found)] == [
        ("GPU1", "its nearest rail mlx5_0 is NODE away, those of others PIX")
    ]


CLOUD = """<system version="1">
  <cpu numaid="0" affinity="00000000,000000ff,ffffffff,ffff0000,00000000,00ffffff,ffffffff" arch="x86_64">
    <pci busid="0000:07:00.0" class="0x060400" link_speed="5.0 GT/s PCIe" link_width="16">
      <pci busid="0000:0B:00.0" class="0x060400" link_speed="32.0 GT/s PCIe">
        <pci busid="0000:0d:00.0" class="0x030200" vendor="0x10de" device="0x2330">
          <gpu dev="0" sm="90" rank="0" gdr="1">
            <nvlink target="0000:1e:00.0" count="9" tclass="0x068000"/>
            <nvlink target="0000:1f:00.0" count="9" tclass="0x068000"/>
          </gpu>
        </pci>
      </pci>
      <pci busid="0000:08:00.0" class="0x060400">
        <pci busid="0000:0a:00.0" class="0x020000" vendor="0x15b3" device="0x1021">
          <nic>
            <net name="mlx5_0" dev="0" speed="180000" port="1" guid="0x1"/>
            <net name="mlx5_1" dev="1" speed="180000" port="2" guid="0x1"/>
          </nic>
        </pci>
      </pci>
    </pci>
    <pci busid="0000:27:00.0" class="0x060400">
      <pci busid="0000:29:00.0" class="0x030200" vendor="0x10de" device="0x2330">
        <gpu dev="1" sm="90"><nvlink target="0000:1e:00.0" count="18" tclass="0x068000"/></gpu>
      </pci>
      <pci busid="0000:2b:00.0" class="0x020700"><nic><net name="mlx5_3" dev="2" speed="400000"/></nic></pci>
    </pci>
  </cpu>
</system>
"""


def test_report_35_an_nccl_file_with_two_devices_on_one_function():
    found = nccl_xml.read("topo.xml", CLOUD)
    assert [port.name for port in found.ports] == ["mlx5_0", "mlx5_1", "mlx5_3"]
    assert found.cell("GPU0", "NIC0") == found.cell("GPU0", "NIC1") == "PXB"
    assert found.cell("NIC0", "NIC1") == found.cell("GPU1", "NIC2") == "PIX"
    assert found.cell("GPU0", "GPU1") == "NV18"
    assert found.cell("GPU0", "NIC2") == "PHB"
    assert found.devices.numa.node(0).cpus == "0-55,112-167"
    assert [(g, n) for g, n in owners(found) if g == "GPU1"] == [("GPU1", "mlx5_3")]


MANY = " ".join(f"a{number}='x'" for number in range(16))
BRIDGE = "<pci busid='0000:01:00.0' class='0x060400'>"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("<system", "unclosed token"),
        ("<system version='2'/>", "not <system version='1'>"),
        ("<other version='1'/>", "not <system version='1'>"),
        ("<system version='1'/>", "neither GPU nor NIC"),
        ("<!DOCTYPE x [<!ENTITY a 'b'>]><system version='1'/>", "declares a document type"),
        ("<system version='1'><cpu><pci busid='x;y'/></cpu></system>", "is no PCI address"),
        (f"<system version='1' long='{'x' * 256}'/>", "256 characters in one string, NCCL reads 255"),
        (f"<system version='1' {MANY}/>", "17 attributes, NCCL reads 16"),
        (f"<system version='1'>{'<cpu/>' * 641}</system>", "641 children, NCCL reads 640"),
        (f"<system version='1'><cpu>{BRIDGE * 3000}{'</pci>' * 3000}</cpu></system>", "below more than 32 bridges"),
    ],
)
def test_what_nccl_would_not_read(text, told):
    with pytest.raises(GpufabError, match=told.replace("<", ".")):
        nccl_xml.read("topo.xml", text)


OLD = (
    "\x1b[4m\tGPU0\tGPU1\tmlx5_0\tmlx5_1\tCPU Affinity\x1b[0m\n"
    "GPU0\t X \tSOC\tPHB\tSOC\t0-7\n"
    "GPU1\tSOC\t X \tSOC\tPHB\t8-15\n"
)


def test_an_old_release_names_nics_itself_and_says_soc():
    found = matrix.parse(OLD)
    assert found.names == ("GPU0", "GPU1", "mlx5_0", "mlx5_1")
    assert found.cells["GPU0", "GPU1"] == "SYS"
    assert (found.cpus, found.numa) == ({"GPU0": "0-7", "GPU1": "8-15"}, {})
    assert owners(matrix.rebuilt("x", found)) == [("GPU0", "mlx5_0"), ("GPU1", "mlx5_1")]


def test_a_guests_blank_affinity_moves_nothing_into_its_column():
    head = "     GPU0 NIC0 CPU Affinity NUMA Affinity GPU NUMA ID\n"
    spaced = matrix.parse(head + "GPU0 X PHB 0 N/A\n")
    assert (spaced.cpus, spaced.numa) == ({}, {"GPU0": "0"})
    tabbed = matrix.parse("\tGPU0\tNIC0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \tPHB\t\tN/A\t\tN/A\n")
    assert (tabbed.cpus, tabbed.numa, tabbed.memory) == ({}, {}, {})


def test_the_node_of_a_gpus_memory_is_read_past_the_empty_column():
    found = matrix.parse("\tGPU0\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID\nGPU0\t X \t0-71\t0\t\t10\n")
    assert (found.cpus, found.numa, found.memory) == ({"GPU0": "0-71"}, {"GPU0": "0"}, {"GPU0": "10"})


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("hello", "no matrix in it"),
        ("", "no matrix in it"),
        ("GPU0 X NV18\n", "no matrix in it"),  # rows without their first line
        ("\tGPU0\tGPU1\n", "no row below"),
        ("\tGPU0\tGPU0\nGPU0\t X \t X \n", "names a device twice"),
        ("\tGPU0\tGPU1\nGPU0\t X \n", "1 of 2 columns"),
        ("\tGPU0\tGPU1\nGPU0\t X \tNVX\n", "'NVX' is no connection"),
    ],
)
def test_what_is_no_matrix(text, told):
    with pytest.raises(GpufabError, match=told):
        matrix.parse(text)


@pytest.mark.parametrize("number", ["\u00b2", "9" * 5000, "-1"])
def test_a_numa_affinity_that_is_no_number_is_not_one(number):
    found = read(f"\tGPU0\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPIX\t0-7\t{number}\n")
    assert [node.cpus for node in found.devices.numa.nodes] == ["0-7"]


def test_cpus_that_a_matrix_does_not_list_are_null_in_json():
    told = text.data(read("\tGPU0\tNIC0\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tPIX\t\t0\n"))
    assert [gpu["cpus"] for gpu in told["gpus"]] == [node["cpus"] for node in told["numa"]] == [None]


def test_prose_below_a_matrix_is_no_row():
    found = read(OLD + "\nGPU0 is near mlx5_0, as the table shows.\n")
    assert len(found.gpus) == 2
