"""The picture: whole, told apart, and never wider than it says."""

import re
from itertools import pairwise
from xml.etree import ElementTree as ET

import pytest

from gpufab_cli.module_utils.devices import Devices
from gpufab_cli.module_utils.topology.numa import Numa, NumaNode
from gpufab_cli.topology import matrix
from gpufab_cli.topology.layout import layout
from gpufab_cli.topology.picture import picture
from tests.pictures import pictures
from tests.unit.core.test_topology import TWO, gpu
from tests.unit.topology.machines import ANSWERS, drawn
from tests.unit.topology.test_reports import table

SVG = "{http://www.w3.org/2000/svg}"


def parsed(text):
    return ET.fromstring(text)  # noqa: S314 (it is our own)


def words(text):
    return [element.text for element in parsed(text).iter(f"{SVG}text")]


@pytest.mark.parametrize("kind", ANSWERS)
def test_every_device_stands_in_it_within_its_frame(tmp_path, kind):
    found = drawn(tmp_path, kind)
    root = parsed(picture(found))
    width, height = float(root.get("width")), float(root.get("height"))
    said = words(picture(found))
    for name in [f"GPU{number}" for number in range(len(found.gpus))] + [port.name for port in found.ports]:
        assert said.count(name) == 1, name
    for box in root.iter(f"{SVG}rect"):
        assert 0 <= float(box.get("x", 0)) <= width - float(box.get("width")) + 1e-6
        assert 0 <= float(box.get("y", 0)) <= height - float(box.get("height")) + 1e-6


@pytest.mark.parametrize("kind", ANSWERS)
def test_no_device_covers_another(tmp_path, kind):
    boxes = re.findall(r'<rect x="([\d.]+)" y="([\d.]+)" width="94" height="52"', picture(drawn(tmp_path, kind)))
    places = sorted((float(y), float(x)) for x, y in boxes)
    for (y, x), (below, right) in pairwise(places):
        assert right - x >= 94 or below > y


def test_findings_are_numbered_at_their_devices_and_told_below():
    text = table(
        "GPU0 GPU1 GPU2 GPU3",
        "GPU0 X NV18 NV18 SYS",
        "GPU1 NV18 X NV18 SYS",
        "GPU2 NV18 NV18 X SYS",
        "GPU3 SYS SYS SYS X",
    )
    said = words(picture(matrix.rebuilt("pasted", matrix.parse(text))))
    assert said.count("1") == 2
    assert "GPU3: no NVLink to any GPU, the others have NV18 (topo.nvlink)" in said


def test_nvlink_is_named_where_there_is_no_middle_for_it():
    numa = Numa(tuple(NumaNode(number, str(number), socket=number) for number in range(3)))
    gpus = tuple(gpu(f"0000:{number}b:00.0", (f"pci0000:{number}0",), number) for number in range(3))
    links = {(one.pci, other.pci): "NV4" for one in gpus for other in gpus if one is not other}
    said = words(picture(layout("x", Devices((), gpus, numa), links=links)))
    assert "3 GPUs · 0 NIC ports · NVLink NV4" in said
    assert {"Socket 0", "Socket 1", "Socket 2"} <= set(said)


def test_what_a_matrix_does_not_name_is_not_named_in_its_picture():
    said = words(picture(matrix.rebuilt("x", matrix.parse("\tGPU0\tNIC0\nGPU0\t X \tSYS\n"))))
    assert said.count("NUMA node not told") == 2
    assert not any(word and word.startswith("NUMA node 6") for word in said)


def test_names_cannot_leave_their_words():
    evil = layout("<script>&\x1b\udcff", Devices((), (gpu("0000:1b:00.0", ("pci0000:15",)),), TWO))
    assert "<script>" not in picture(evil)
    assert "<script>&??" in words(picture(evil))


def test_a_node_without_devices_is_an_empty_picture():
    assert "0 GPUs · 0 NIC ports" in words(picture(layout("x", Devices())))


def test_the_pictures_in_docs_are_the_ones_that_are_drawn_today():
    for path, text in pictures():
        assert path.read_text() == text, f"{path.name} is stale: make pictures"
