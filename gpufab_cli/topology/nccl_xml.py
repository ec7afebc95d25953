"""A topology in NCCL's own XML: what NCCL_TOPO_DUMP_FILE writes and NCCL_TOPO_FILE reads.

Its limits are those of NCCL's reader (src/graph/xml.h): version 1, 16 attributes a node, 255 characters a string, 640
children. A switch stands there as its upstream port alone, and all that is below one CPU is as far apart as its root
complexes: PHB here, where nvidia-smi may say NODE.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from xml.etree import ElementTree as ET

from gpufab_cli.errors import GpufabError
from gpufab_cli.module_utils.change import ABSENT
from gpufab_cli.module_utils.devices import Devices, Gpu, Nic, RdmaDevice
from gpufab_cli.module_utils.topology.cpus import format_cpus
from gpufab_cli.module_utils.topology.numa import Numa, NumaNode
from gpufab_cli.topology.layout import Layout, layout

_ATTRIBUTES, _CHARACTERS, _CHILDREN = 16, 255, 640
_DEPTH = 32  # bridges above a function; PCI Express machines have fewer than ten
_WORD_BITS = 32
_ADDRESS = re.compile(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]")
_BRIDGE, _GPU, _NIC = "0x0604", ("0x0300", "0x0302"), ("0x0200", "0x0207")
_SWITCH_LINK = "0x068000"  # an NVLink that ends at an NVSwitch
_HINT = "NCCL itself would not read it so"


def is_xml(text: str) -> bool:
    """Whether a text looks like an XML file."""
    return text.lstrip("\ufeff \t\r\n").startswith("<")


def read(name: str, text: str) -> Layout:
    """The topology that a file describes.

    Raises:
        GpufabError: it is no such file, or beyond NCCL's limits.
    """
    root = _parsed(name, text)
    if root.tag != "system" or root.get("version") != "1":
        seen = f"<{root.tag:.40} version={root.get('version')!r:.40}>"
        raise GpufabError(f"{name}: {seen}, not <system version='1'>", _HINT)
    for element in root.iter():
        _check(name, element)
    found = _Found()
    for index, cpu in enumerate(root.findall("cpu")):
        numa = _number(cpu.get("numaid"), index)
        found.nodes.append(NumaNode(numa, _cpus(cpu.get("affinity", ""))))
        for child in cpu.findall("pci"):
            _walk(found, child, numa, (f"pci{index:04x}:00",))
    if not (found.gpus or found.nics):
        raise GpufabError(f"{name}: neither GPU nor NIC in it")
    gpus = tuple(found.gpus[dev] for dev in sorted(found.gpus))
    devices = Devices(tuple(found.nics), gpus, Numa(tuple(sorted(found.nodes, key=lambda node: node.id))))
    return layout(name, devices, links=_links(found, gpus))


def _parsed(name: str, text: str) -> ET.Element:
    # Entities that grow or reach elsewhere are declared in a document type, and NCCL's files have none.
    if "<!DOCTYPE" in text or "<!ENTITY" in text:
        raise GpufabError(f"{name}: declares a document type", "an NCCL topology has none")
    try:
        return ET.fromstring(text.lstrip("\ufeff \t\r\n"))  # noqa: S314 (see above)
    except ET.ParseError as error:
        raise GpufabError(f"{name}: {error}", "this is no whole XML file") from error


def _check(name: str, element: ET.Element) -> None:
    longest = max((len(text) for text in (element.tag, *element.attrib, *element.attrib.values())), default=0)
    for what, count, limit in (
        ("attributes", len(element.attrib), _ATTRIBUTES),
        ("children", len(element), _CHILDREN),
        ("characters in one string", longest, _CHARACTERS),
    ):
        if count > limit:
            raise GpufabError(f"{name}: <{element.tag:.40}> has {count} {what}, NCCL reads {limit}", _HINT)


@dataclass
class _Found:
    """What the file holds, as it is walked."""

    nodes: list[NumaNode] = field(default_factory=list)
    gpus: dict[tuple[int, str], Gpu] = field(default_factory=dict)
    nics: list[Nic] = field(default_factory=list)
    nvlinks: list[tuple[str, str, str, int]] = field(default_factory=list)  # from, to, class of what is there, how many


def _walk(found: _Found, element: ET.Element, numa: int, above: tuple[str, ...]) -> None:
    """Take a PCI function and all below it. A bridge is a switch: its ports towards each child are not in the file."""
    pci, kind = element.get("busid", "").lower(), element.get("class", "")[:6]
    if not _ADDRESS.fullmatch(pci):
        raise GpufabError(f"<pci busid={element.get('busid')!r:.40}> is no PCI address")
    if len(above) > 2 * _DEPTH:  # a switch counts twice
        raise GpufabError(f"{pci} is below more than {_DEPTH} bridges", "no machine is nested as deeply")
    gpu = element.find("gpu")
    if kind in _GPU or gpu is not None:
        key = (_number(gpu.get("dev"), 0) if gpu is not None else 0, pci)
        vendor, device = element.get("vendor", ""), element.get("device", "")
        found.gpus[key] = Gpu(pci, vendor, device, "nvidia", numa, above)
        found.nvlinks += _ends(pci, gpu if gpu is not None else element)
    elif kind in _NIC or element.find("nic") is not None:
        found.nics.append(_nic(element, pci, numa, above))
    elif kind == _BRIDGE:
        switch = above[1:] or (f"port above {pci}",)
        for child in element.findall("pci"):
            _walk(found, child, numa, (above[0], *switch, pci, f"port of {child.get('busid', '').lower()}"))


def _nic(element: ET.Element, pci: str, numa: int, above: tuple[str, ...]) -> Nic:
    rdma = tuple(_rdma(net, element.get("class", "")[:6]) for net in element.iter("net"))
    return Nic(
        pci=pci,
        driver="mlx5_core",
        vendor=element.get("vendor", ""),
        device=element.get("device", ""),
        numa_node=numa,
        is_vf=False,
        serial=ABSENT,
        psid=ABSENT,
        fw_version=ABSENT,
        rdma=rdma or (_unnamed(pci),),
        above=above,
    )


def _ends(pci: str, element: ET.Element) -> Iterator[tuple[str, str, str, int]]:
    for link in element.findall("nvlink"):
        yield pci, link.get("target", "").lower(), link.get("tclass", ""), _number(link.get("count"), 0)


def _rdma(net: ET.Element, kind: str) -> RdmaDevice:
    layer = "InfiniBand" if kind == "0x0207" else "Ethernet"
    speed = _number(net.get("speed"), 0) // 1000
    return RdmaDevice(net.get("name", ""), net.get("guid", ""), layer, "ACTIVE", f"{speed} Gb/sec")


def _unnamed(pci: str) -> RdmaDevice:
    """A NIC of a file that was written by hand without <nic>: it stands there to be found by its address."""
    return RdmaDevice(pci, "", "InfiniBand", "ACTIVE", "1 Gb/sec")


def _links(found: _Found, gpus: tuple[Gpu, ...]) -> dict[tuple[str, str], str]:
    """NVLinks from GPU to GPU: those between them, or all that both have to switches."""
    switched: dict[str, int] = {}
    links: dict[tuple[str, str], str] = {}
    for here, there, kind, count in found.nvlinks:
        if kind == _SWITCH_LINK:
            switched[here] = switched.get(here, 0) + count
        else:
            links[here, there] = links[there, here] = f"NV{count}"
    for one in gpus:
        for other in gpus:
            both = min(switched.get(one.pci, 0), switched.get(other.pci, 0))
            if both and one is not other:
                links[one.pci, other.pci] = f"NV{both}"
    return links


def _cpus(words: str) -> str:
    """CPUs of an affinity mask: words of 32 bits in hexadecimal, highest first."""
    try:
        mask = sum(int(word, 16) << (_WORD_BITS * n) for n, word in enumerate(reversed(words.split(","))))
    except ValueError:
        return ""
    return format_cpus(bit for bit in range(mask.bit_length()) if mask >> bit & 1)


def _number(text: str | None, default: int) -> int:
    return int(text) if text is not None and re.fullmatch(r"-?[0-9]{1,9}", text) else default
