"""How two PCI functions are connected, in the terms of ``nvidia-smi topo -m``, told by their places in the PCI tree.

``above`` of a function is what lies between it and the CPU: root bus, root port, then for each PCI Express switch its
upstream and its downstream port.
"""

from enum import Enum
from typing import Optional, Protocol, Tuple

from .numa import Numa

_ONE_SWITCH = 1  # downstream ports below the last common bridge where both functions are behind one switch


class Placed(Protocol):
    """A PCI function with its place."""

    @property
    def pci(self) -> str:
        """PCI address."""

    @property
    def numa_node(self) -> int:
        """NUMA node; -1 where the firmware does not say."""

    @property
    def above(self) -> Tuple[str, ...]:
        """Root bus and bridges above it, outermost first; () where they are not known."""


class Relation(str, Enum):
    """The connection of two devices, nearest first."""

    SELF = "X"
    PIX = "PIX"
    PXB = "PXB"
    PHB = "PHB"
    NODE = "NODE"
    SYS = "SYS"
    UNKNOWN = "?"

    @property
    def rank(self) -> int:
        """0 is nearest; what is not known comes last."""
        return list(Relation).index(self)

    @property
    def near(self) -> bool:
        """Whether traffic between the two need not go through the CPU."""
        return self.rank <= Relation.PXB.rank


def relation(one: Placed, other: Placed, numa: Numa) -> Relation:
    """How two functions are connected."""
    if one.pci == other.pci:
        return Relation.SELF
    if not one.above or not other.above:
        return Relation.UNKNOWN
    rest = _apart(one, other)
    if bridges(one)[:1] == bridges(other)[:1] != ():
        return Relation.PIX if max(map(len, rest)) <= _ONE_SWITCH else Relation.PXB
    if one.above[0] == other.above[0]:
        return Relation.PHB
    return _over_cpu(one.numa_node, other.numa_node, numa)


def _over_cpu(one: int, other: int, numa: Numa) -> Relation:
    here, there = _home(one, numa), _home(other, numa)
    if here is None or there is None:
        return Relation.UNKNOWN
    return Relation.NODE if here == there else Relation.SYS


def _home(number: int, numa: Numa) -> Optional[int]:
    """The node that a device is near to; the machine's list of nodes may not be known, as in an old snapshot."""
    node = numa.local(number)
    if node is not None:
        return node.id
    return number if number >= 0 and not numa.nodes else None


def bridges(device: Placed) -> Tuple[str, ...]:
    """PCI addresses of the bridges above a function, root port first."""
    return device.above[1:]


def between(one: Placed, other: Placed) -> Tuple[str, ...]:
    """The bridges that peer-to-peer traffic of two functions passes: those whose access control can turn it away.

    Behind a common switch these are its downstream ports; over the CPU, all bridges of both.
    """
    first, second = _apart(one, other)
    return (*first, *second)


def _apart(one: Placed, other: Placed) -> Tuple[Tuple[str, ...], Tuple[str, ...]]:
    """What is above each of the two and not above the other."""
    first, second = bridges(one), bridges(other)
    common = 0
    while common < min(len(first), len(second)) and first[common] == second[common]:
        common += 1
    return first[common:], second[common:]
