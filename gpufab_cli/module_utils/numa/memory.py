"""Huge pages of each NUMA node, and transparent ones (kernel: admin-guide/mm/{hugetlbpage,transhuge}.rst)."""

import re
from typing import Dict, Iterable, Iterator, Tuple

from ..change import Unknown
from ..host import Host, Reader
from ..topology.numa import NODES, Numa
from .seen import Text

TRANSPARENT = "/sys/kernel/mm/transparent_hugepage/enabled"
_UNITS = {"K": 1, "M": 1024, "G": 1024 * 1024}


def transparent(host: Reader) -> Text:
    """The word that the kernel has in brackets: always, madvise or never."""
    text = host.read(TRANSPARENT)
    if not isinstance(text, str):
        return text
    match = re.search(r"\[(\w+)\]", text)
    return match[1] if match else Unknown(f"{TRANSPARENT}: {text!r} has no word in brackets")


def places(numa: Numa, sizes: Iterable[str]) -> Iterator[Tuple[str, str]]:
    """Where huge pages are wanted: nodes with CPUs and memory. Memory of GPUs and CXL devices is none of theirs."""
    for node in numa.with_cpus:
        if node.memory:
            yield from ((f"node{node.id}", size) for size in sizes)


def path(node: str, size: str) -> str:
    """The file that says how many pages of a size a node has."""
    kib = int(size[:-1]) * _UNITS[size[-1]]
    return f"{NODES}/{node}/hugepages/hugepages-{kib}kB/nr_hugepages"


def hugepages(host: Reader, numa: Numa, sizes: Iterable[str]) -> Dict[str, Text]:
    """How many there are, as NODE/SIZE; ABSENT where the kernel has no pages of that size."""
    return {f"{node}/{size}": host.read(path(node, size)) for node, size in places(numa, sizes)}


def set_hugepages(host: Host, place: str, count: str) -> None:
    """Ask for a number of pages; the kernel gives as many as it finds memory for, and says nothing."""
    host.set(path(*place.split("/")), count)
