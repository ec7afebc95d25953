"""Random machines: a matrix gives a tree with the same matrix, and what is missing moves no pair of another switch."""

import json
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from gpufab_cli.errors import GpufabError
from gpufab_cli.module_utils.devices import Devices
from gpufab_cli.module_utils.topology.cpus import format_cpus, parse_cpus
from gpufab_cli.module_utils.topology.numa import Numa, NumaNode
from gpufab_cli.module_utils.topology.pairing import pair
from gpufab_cli.topology import matrix, nccl_xml, text
from gpufab_cli.topology.layout import layout
from gpufab_cli.topology.picture import picture
from tests.unit.core.test_topology import gpu
from tests.unit.topology.machines import MATRICES
from tests.unit.topology.test_reports import CLOUD, port

COUNTS = st.tuples(st.integers(0, 2), st.integers(0, 2))


@st.composite
def machines(draw):
    """Sockets with root ports; below each nothing, a switch, or nested switches, with GPUs and rails."""
    gpus, nics = [], []
    sockets = draw(st.integers(1, 3))
    for bus in range(draw(st.integers(1, 6))):
        numa, nested = draw(st.integers(0, sockets - 1)), draw(st.integers(0, 2))
        root = (f"pci0000:{bus:x}0", f"0000:{bus:x}0:01.0")
        for slot, count in enumerate(draw(COUNTS)):
            for number in range(count):
                shared = [f"0000:{bus:x}1:00.0", f"0000:{bus:x}2:0{slot}.0", f"0000:{bus:x}3:0{slot}.0"]
                switches = shared[: 2 * nested - 1] if nested else []
                own = [f"0000:{bus:x}4:{slot}{number}.0"] if nested else []
                above = (*root, *switches, *own)
                if slot:
                    device = port(len(nics), above, "InfiniBand", "ACTIVE", "400 Gb/sec", numa=numa)
                    nics.append(replace(device, pci=f"0000:{bus:x}{5 + number}:00.0"))
                else:
                    gpus.append(gpu(f"0000:{bus:x}{7 + number}:00.0", above, numa))
    nodes = tuple(NumaNode(number, f"{8 * number}-{8 * number + 7}") for number in range(sockets))
    return Devices(tuple(nics), tuple(gpus), Numa(nodes))


def shown(found):
    return {(one, other): found.cell(one, other) for one in found.columns for other in found.columns}


@given(machines())
def test_a_matrix_gives_a_tree_with_the_same_matrix(devices):
    found = layout("x", devices)
    if not found.gpus:
        return
    head, rows = text.matrix_rows(found)
    read = matrix.parse("\n".join("\t".join(row) for row in [head, *rows]))
    assert read.cells == shown(found)
    assert shown(layout("again", matrix.rebuilt("x", read).devices)) == shown(found)


@given(machines())
def test_a_missing_device_moves_no_pair_behind_another_switch(devices):
    nics = [nic.pci for nic in devices.nics]
    known = {(item.gpu, item.nic): item for item in pair(devices, nics).pairs}
    for gone in (*devices.gpus, *devices.nics):
        left = replace(
            devices,
            gpus=tuple(item for item in devices.gpus if item is not gone),
            nics=tuple(item for item in devices.nics if item is not gone),
        )
        pairs = {(item.gpu, item.nic) for item in pair(left, nics).pairs}
        places = {item.pci: item.above[:2] for item in (*devices.gpus, *devices.nics)}
        others = {pair for pair, item in known.items() if item.relation.near and places[pair[0]] != gone.above[:2]}
        assert others <= pairs


@given(machines())
def test_every_gpu_and_rail_is_paired_once_at_its_smallest_distance(devices):
    pairing = pair(devices, [nic.pci for nic in devices.nics])
    pairs = [(item.gpu, item.nic) for item in (*pairing.pairs, *pairing.remote)]
    assert len(set(pairs)) == len(pairs)
    if devices.nics:
        assert {item.gpu for item in (*pairing.pairs, *pairing.remote)} == {item.pci for item in devices.gpus}


@given(machines())
def test_every_machine_can_be_drawn(devices):
    assert picture(layout("x", devices)).endswith("</svg>\n")


@given(st.sets(st.integers(0, 600)))
def test_a_cpu_list_is_read_as_it_was_written(cpus):
    assert parse_cpus(format_cpus(cpus)) == tuple(sorted(cpus))


RECORDED = [path.read_text() for path in sorted(MATRICES.glob("*.txt"))] + [CLOUD]
CUTS = st.lists(st.tuples(st.floats(0, 1), st.integers(0, 30), st.text(max_size=6)), min_size=1, max_size=6)


@given(st.sampled_from(RECORDED), CUTS)
def test_what_was_mangled_on_its_way_is_read_or_refused(whole, cuts):
    for place, length, inserted in cuts:
        start = int(place * len(whole))
        whole = whole[:start] + inserted + whole[start + length :]
    try:
        found = nccl_xml.read("x", whole) if nccl_xml.is_xml(whole) else matrix.rebuilt("x", matrix.parse(whole))
    except GpufabError:
        return
    assert picture(found).endswith("</svg>\n")
    json.dumps(text.data(found))
