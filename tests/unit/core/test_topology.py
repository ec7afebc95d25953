"""Places in the PCI tree, NUMA nodes of every shape, and who is paired with whom."""

import io
import json
from dataclasses import replace

import pytest

from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.devices import Devices, Gpu, Nic, gather
from gpufab_cli.module_utils.schema import SchemaError, decode, encode
from gpufab_cli.module_utils.topology import report
from gpufab_cli.module_utils.topology.cpus import format_cpus, parse_cpus
from gpufab_cli.module_utils.topology.numa import Numa, NumaNode, cores
from gpufab_cli.module_utils.topology.numa import gather as gather_numa
from gpufab_cli.module_utils.topology.pairing import match, pair
from gpufab_cli.module_utils.topology.relation import Relation, between, bridges, relation
from tests.fakes import FakeHost, failed, ok

TWO = Numa((NumaNode(0, "0-3", distances=((0, 10), (1, 21))), NumaNode(1, "4-7", distances=((0, 21), (1, 10)))))
NODE, CPU, PCI = "/sys/devices/system/node", "/sys/devices/system/cpu", "/sys/bus/pci/devices"


def gpu(pci, above=(), numa=0):
    return Gpu(pci, "0x10de", "0x2330", "nvidia", numa, tuple(above))


def nic(pci, above=(), numa=0):
    return Nic(pci, "mlx5_core", "0x15b3", "0x1021", numa, False, "", "", "", above=tuple(above))


@pytest.mark.parametrize(
    ("text", "cpus", "written"),
    [
        ("", (), ""),
        ("0-3,8", (0, 1, 2, 3, 8), "0-3,8"),
        ("1,3,5", (1, 3, 5), "1,3,5"),
        ("4,6,8,10,12", (4, 6, 8, 10, 12), "4,6,8,10,12"),
        ("2-3,0-1", (0, 1, 2, 3), "0-3"),
        ("7", (7,), "7"),
    ],
)
def test_cpu_lists(text, cpus, written):
    assert parse_cpus(text) == cpus
    assert format_cpus(cpus) == written


@pytest.mark.parametrize("text", ["3-1", "a", "0-", "0--2", "0,,1", "-1", "0x3"])
def test_what_is_no_cpu_list(text):
    with pytest.raises(ValueError, match="no list of CPUs"):
        parse_cpus(text)


SWITCH = ("pci0000:15", "0000:15:01.0", "0000:16:00.0")
NESTED = (*SWITCH, "0000:17:08.0", "0000:18:00.0")


@pytest.mark.parametrize(
    ("one", "other", "numa", "wanted"),
    [
        ((*SWITCH, "0000:17:00.0"), (*SWITCH, "0000:17:01.0"), (0, 0), "PIX"),
        ((*SWITCH, "0000:17:00.0"), (*SWITCH, "0000:17:00.0"), (0, 0), "PIX"),  # two functions of one card
        (("pci0000:15", "0000:15:01.0"), ("pci0000:15", "0000:15:01.0"), (0, 0), "PIX"),
        ((*SWITCH, "0000:17:00.0"), (*NESTED, "0000:19:00.0"), (0, 0), "PXB"),
        (("pci0000:15", "0000:15:01.0"), ("pci0000:15", "0000:15:02.0"), (0, 0), "PHB"),
        (("pci0000:00",), ("pci0000:00",), (-1, -1), "PHB"),  # a guest: no bridge at all
        (("pci0000:15", "0000:15:01.0"), ("pci0000:26", "0000:26:01.0"), (0, 0), "NODE"),
        (("pci0000:15", "0000:15:01.0"), ("pci0000:97", "0000:97:01.0"), (0, 1), "SYS"),
        (("pci0000:15", "0000:15:01.0"), ("pci0000:97", "0000:97:01.0"), (0, -1), "?"),
        ((), ("pci0000:97", "0000:97:01.0"), (0, 0), "?"),
    ],
)
def test_relations(one, other, numa, wanted):
    first, second = gpu("0000:1b:00.0", one, numa[0]), nic("0000:1c:00.0", other, numa[1])
    assert relation(first, second, TWO).value == wanted
    assert relation(second, first, TWO).value == wanted


def test_a_device_is_itself():
    assert relation(gpu("0000:1b:00.0"), gpu("0000:1b:00.0"), TWO) is Relation.SELF


def test_one_node_makes_all_that_is_over_the_cpu_node():
    one = Numa((NumaNode(0, "0-7"), NumaNode(4, "")))
    first = gpu("0000:1b:00.0", ("pci0000:15", "0000:15:01.0"), 4)
    assert relation(first, nic("0000:9b:00.0", ("pci0000:97",), -1), one) is Relation.NODE


def test_without_a_list_of_nodes_the_numbers_of_the_devices_are_compared():
    here = gpu("0000:1b:00.0", ("pci0000:15",), 0)
    assert relation(here, nic("0000:9b:00.0", ("pci0000:97",), 1), Numa()) is Relation.SYS
    assert relation(here, nic("0000:9b:00.0", ("pci0000:97",), -1), Numa()) is Relation.UNKNOWN


def test_the_bridges_between_two_devices_are_those_that_can_turn_traffic_away():
    first, second = gpu("0000:1b:00.0", (*SWITCH, "0000:17:00.0")), nic("0000:1c:00.0", (*SWITCH, "0000:17:01.0"))
    assert between(first, second) == ("0000:17:00.0", "0000:17:01.0")
    assert bridges(first) == ("0000:15:01.0", "0000:16:00.0", "0000:17:00.0")
    far = nic("0000:9b:00.0", ("pci0000:97", "0000:97:01.0"))
    assert between(first, far) == (*bridges(first), "0000:97:01.0")


def sysfs(nodes, **files):
    """Files of nodes given as {id: (cpulist, distances)}."""
    listed = ",".join(map(str, nodes))
    found = {f"{NODE}/online": listed, f"{NODE}/has_memory": listed}
    for number, (cpus, distances) in nodes.items():
        found[f"{NODE}/node{number}/cpulist"], found[f"{NODE}/node{number}/distance"] = cpus, distances
    return found | files


def test_numa_nodes_with_holes_and_without_cpus_or_memory():
    files = sysfs({0: ("0-71", "10 80 80"), 2: ("", "80 10 255"), 3: ("72-143", "80 255 10")})
    files |= {f"{NODE}/has_memory": "0,2", f"{CPU}/cpu72/topology/physical_package_id": "1"}
    numa = gather_numa(FakeHost(files))
    assert [(node.id, node.cpus, node.memory, node.socket) for node in numa.nodes] == [
        (0, "0-71", True, -1),
        (2, "", True, -1),
        (3, "72-143", False, 1),
    ]
    assert (numa.distance(2, 3), numa.distance(0, 7), numa.distance(9, 0)) == (255, None, None)
    assert [node.id for node in numa.with_cpus] == [0, 3]
    assert numa.local(2).id == 0  # the nearest that has CPUs
    assert numa.local(3).id == 3
    assert numa.local(-1) is None  # two to choose from


def test_the_only_node_with_cpus_is_everybodys():
    numa = gather_numa(FakeHost(sysfs({0: ("0-71", "10 80"), 5: ("", "80 10")})))
    assert [numa.local(number).id for number in (-1, 0, 5, 9)] == [0, 0, 0, 0]


def test_two_nodes_equally_near_are_not_chosen_from():
    numa = gather_numa(FakeHost(sysfs({0: ("0", "10 21 40"), 1: ("1", "21 10 40"), 2: ("", "40 40 10")})))
    assert numa.local(2) is None


def test_a_kernel_without_numa_has_one_node_and_an_unreadable_one_none():
    assert [node.cpus for node in gather_numa(FakeHost({f"{CPU}/online": "0-7"})).nodes] == ["0-7"]
    host = FakeHost(sysfs({0: ("0-7", "10")}))
    host.unreadable[f"{NODE}/online"] = "Permission denied"
    assert gather_numa(host) == Numa()


def test_a_node_that_cannot_be_read_does_not_make_another_the_only_one():
    host = FakeHost(sysfs({0: ("0-3", "10 21"), 1: ("4-7", "21 10")}))
    host.unreadable[f"{NODE}/node1/cpulist"] = "Input/output error"
    assert gather_numa(host).local(1) is None


def test_garbage_in_a_distance_leaves_distances_out():
    numa = gather_numa(FakeHost(sysfs({0: ("0", "10 x"), 1: ("1", "10")})))
    assert [node.distances for node in numa.nodes] == [(), ()]


def test_cores_are_threads_that_belong_together():
    def siblings(cpu, text):
        return {f"{CPU}/cpu{cpu}/topology/thread_siblings_list": text}

    files = siblings(0, "0,112") | siblings(1, "1,113") | siblings(112, "0,112") | siblings(113, "1,113")
    assert cores(FakeHost(files), (0, 1, 112, 113)) == ((0, 112), (1, 113))
    assert cores(FakeHost(files), (112, 1)) == ((1,), (112,))
    assert isinstance(cores(FakeHost(files), (0, 7)), Unknown)


def test_devices_know_their_place_and_a_display_of_the_board_is_no_gpu():
    place = "../../../devices/platform/pci0009:00/0009:00:00.0/00000009:01:00.0"
    files = {f"{PCI}/00000009:01:00.0/{name}": value for name, value in (("class", "0x030200"), ("vendor", "0x10de"))}
    files |= {f"{PCI}/0000:03:00.0/{name}": value for name, value in (("class", "0x030000"), ("vendor", "0x1a03"))}
    host = FakeHost(files | sysfs({0: ("0-71", "10")}), {f"{PCI}/00000009:01:00.0": place})
    host._resolve = lambda path: path  # the link is to be read, not to be followed
    devices = gather(host)
    assert [(found.pci, found.above) for found in devices.gpus] == [
        ("00000009:01:00.0", ("pci0009:00", "0009:00:00.0"))
    ]
    assert [node.id for node in devices.numa.nodes] == [0]


@pytest.mark.parametrize(
    ("answer", "matrix"),
    [
        (ok("\tGPU0\n"), "\tGPU0\n"),
        (failed("no driver", rc=9), {"unknown": "nvidia-smi topo -m: exit 9: no driver"}),
        (Unknown("nvidia-smi is not installed"), {"unknown": "nvidia-smi is not installed"}),
    ],
)
def test_what_is_reported_of_a_node(answer, matrix):
    out = io.StringIO()
    files = sysfs({0: ("0-7", "10")}) | {f"{PCI}/0000:00:00.0/class": "0x060000"}
    report.answer(FakeHost(files, answers={report.MATRIX: answer}), out, "marker")
    first, second = out.getvalue().splitlines()
    assert (first, json.loads(second)["matrix"]) == ("marker", matrix)
    assert decode(Devices, json.loads(second)["devices"]).numa.with_cpus[0].cpus == "0-7"


def board(count, shared=1):
    """GPUs and NICs behind one switch each, or several GPUs behind one."""
    gpus, nics = [], []
    for number in range(count):
        root = number // shared
        above = (f"pci0000:{root + 1}0", f"0000:{root + 1}0:01.0", f"0000:{root + 1}1:00.0")
        gpus.append(
            gpu(f"0000:{root + 1}{number % shared + 4}:00.0", (*above, f"0000:{root + 1}2:{number % shared}0.0"))
        )
        if number % shared == 0:
            nics.append(nic(f"0000:{root + 1}3:00.0", (*above, f"0000:{root + 1}2:1f.0")))
    return Devices(tuple(nics), tuple(gpus), TWO)


def pairs(devices, rails=None):
    found = pair(devices, [item.pci for item in devices.nics] if rails is None else rails)
    return {(item.gpu, item.nic) for item in found.pairs}


@pytest.mark.parametrize("shared", [1, 2])
def test_one_that_is_missing_moves_no_other_pair(shared):
    whole = board(8, shared)
    known = pairs(whole)
    assert len(known) == 8
    for gone in whole.gpus:
        left = replace(whole, gpus=tuple(item for item in whole.gpus if item is not gone))
        assert pairs(left) == {item for item in known if item[0] != gone.pci}
    for gone in whole.nics:
        left = replace(whole, nics=tuple(item for item in whole.nics if item is not gone))
        assert {item for item in known if item[1] != gone.pci} <= pairs(left)


@pytest.mark.parametrize("address", ["", "0000:zz:00.0", "a:b.c:d"])
def test_a_node_s_answer_with_addresses_that_are_none_is_garbage_and_goes_no_further(address):
    whole = encode(Devices((), (gpu("0000:1b:00.0", ("pci0000:15",)),), TWO))
    assert decode(Devices, whole, "devices").gpus[0].pci == "0000:1b:00.0"
    whole["gpus"][0]["pci"] = address
    with pytest.raises(SchemaError, match="PCI address"):
        decode(Devices, whole, "devices")


def test_a_gpu_without_its_own_port_borrows_one():
    whole = board(2)
    left = replace(whole, nics=whole.nics[1:])
    found = pair(left, [left.nics[0].pci])
    assert [(item.gpu, item.relation.value) for item in found.pairs] == [
        (whole.gpus[0].pci, "NODE"),
        (whole.gpus[1].pci, "PIX"),
    ]
    assert found.gpus_of(left.nics[0].pci) == (whole.gpus[0].pci, whole.gpus[1].pci)


def test_what_is_no_rail_is_nobodys():
    assert pairs(board(2), rails=[]) == set()
    assert pair(board(2), ["0000:ff:00.0"]).nics_of("0000:14:00.0") == ()


@pytest.mark.parametrize(
    ("gpus", "nics", "wanted"),
    [
        ([1, 2, 3], [11, 12, 13], [(0, 0), (1, 1), (2, 2)]),
        ([1, 2, 3, 4], [11, 12], [(0, 0), (1, 0), (2, 1), (3, 1)]),
        ([1, 2], [11, 12, 13, 14], [(0, 0), (0, 1), (1, 2), (1, 3)]),
        ([1, 3, 4], [11, 12, 13, 14], [(0, 0), (1, 2), (2, 3)]),  # 2 is missing: 12 stays free
        ([1, 2, 3, 4], [11, 13, 14], [(0, 0), (1, 0), (2, 1), (3, 2)]),  # 12 is missing
        ([], [1], []),
        ([1], [], []),
    ],
)
def test_rows_that_are_equally_near(gpus, nics, wanted):
    assert match(gpus, nics) == wanted


def test_a_long_row_is_laid_in_order_rather_than_in_every_way():
    assert match(list(range(8)), list(range(100, 131))) == [(number, number) for number in range(8)]
