"""The NUMA nodes of a machine: which CPUs and memory each has, and how far apart they are.

Ids may be sparse. Nodes without CPUs exist (GPU memory of Grace, CXL), nodes without memory too (NPS4 with empty
channels). Source: Documentation/ABI/stable/sysfs-devices-node and sysfs-devices-system-cpu.
"""

from dataclasses import dataclass
from typing import Iterable, List, Optional, Set, Tuple, Union

from ..change import Unknown
from ..host import Reader
from ..texts import natural
from .cpus import parse_cpus

NODES = "/sys/devices/system/node"
CPUS = "/sys/devices/system/cpu"
NOT_SAID = -1
"""What the kernel gives as a device's node where the firmware names none (NUMA_NO_NODE)."""


@dataclass(frozen=True)
class NumaNode:
    """One NUMA node.

    Attributes:
        id: its number; not its place among the others.
        cpus: its CPUs that are online, as the kernel lists them; "" where it has none: nothing can be bound to it.
        memory: whether it has memory.
        socket: the processor package of its CPUs; -1 where it has none or it is not known.
        distances: by node id, how far each node's memory is (ACPI SLIT: 10 is local).
    """

    id: int
    cpus: str
    memory: bool = True
    socket: int = -1
    distances: Tuple[Tuple[int, int], ...] = ()


@dataclass(frozen=True)
class Numa:
    """Every NUMA node, ids ascending; none at all where they are not known."""

    nodes: Tuple[NumaNode, ...] = ()

    def node(self, number: int) -> Optional[NumaNode]:
        """The node of this id."""
        return next((node for node in self.nodes if node.id == number), None)

    @property
    def with_cpus(self) -> Tuple[NumaNode, ...]:
        """The nodes that something can be bound to."""
        return tuple(node for node in self.nodes if node.cpus)

    def distance(self, one: int, other: int) -> Optional[int]:
        """How far the memory of one node is from another's CPUs; None where it is not known."""
        found = self.node(one)
        return dict(found.distances).get(other) if found is not None else None

    def local(self, number: int) -> Optional[NumaNode]:
        """The node to bind to for a device of this node; None where the machine does not say.

        A node without CPUs stands for the one nearest to it. ``-1`` can only be the one that there is.
        """
        found, bindable = self.node(number), self.with_cpus
        if found is not None and found.cpus:
            return found
        if len(bindable) == 1:
            return bindable[0]
        return _nearest(found, bindable) if found is not None else None


NOT_KNOWN = Numa()


def _nearest(node: NumaNode, others: Tuple[NumaNode, ...]) -> Optional[NumaNode]:
    """The one node that is nearer than all others."""
    far = dict(node.distances)
    ranked = sorted((far[other.id], other.id, other) for other in others if other.id in far)
    alone = len(ranked) == len(others) > 0 and (len(ranked) == 1 or ranked[0][0] < ranked[1][0])
    return ranked[0][2] if alone else None


def gather(host: Reader) -> Numa:
    """Read the NUMA nodes. A kernel without NUMA has one node, of all CPUs.

    One that cannot be read leaves all unknown: without it another might pass for the only one with CPUs.
    """
    online = _numbers(host, f"{NODES}/online")
    if online is None:
        cpus = host.read(f"{CPUS}/online")
        return Numa((NumaNode(0, cpus),)) if isinstance(cpus, str) and not host.exists(NODES) else Numa()
    memory = _numbers(host, f"{NODES}/has_memory")
    nodes = [_node(host, number, online, memory) for number in online]
    found = tuple(node for node in nodes if node is not None)
    return Numa(found) if len(found) == len(nodes) else NOT_KNOWN


def _node(host: Reader, number: int, online: Tuple[int, ...], memory: Optional[Tuple[int, ...]]) -> Optional[NumaNode]:
    cpus, distance = host.read(f"{NODES}/node{number}/cpulist"), host.read(f"{NODES}/node{number}/distance")
    if not isinstance(cpus, str):
        return None
    words = distance.split() if isinstance(distance, str) else []
    hops = [hop for hop in map(natural, words) if hop is not None]
    far = tuple(zip(online, hops)) if len(hops) == len(words) == len(online) else ()
    return NumaNode(number, cpus, memory is None or number in memory, _socket(host, cpus), far)


def _socket(host: Reader, cpus: str) -> int:
    first = cpus.replace("-", ",").split(",")[0]
    package = natural(host.read(f"{CPUS}/cpu{first}/topology/physical_package_id")) if first else None
    return -1 if package is None else package


def _numbers(host: Reader, path: str) -> Optional[Tuple[int, ...]]:
    """A list of node ids; None where there is none."""
    text = host.read(path)
    try:
        return parse_cpus(text) if isinstance(text, str) else None
    except ValueError:
        return None


def cores(host: Reader, cpus: Iterable[int]) -> Union[Tuple[Tuple[int, ...], ...], Unknown]:
    """The cores that some CPUs are threads of, each as its threads among these CPUs, lowest first."""
    wanted = sorted(set(cpus))
    found: List[Tuple[int, ...]] = []
    placed: Set[int] = set()
    for cpu in wanted:
        if cpu in placed:
            continue
        text = host.read(f"{CPUS}/cpu{cpu}/topology/thread_siblings_list")
        try:
            threads = parse_cpus(text) if isinstance(text, str) else ()
        except ValueError:
            threads = ()
        if cpu not in threads:
            return Unknown(f"{CPUS}/cpu{cpu}: its thread siblings cannot be read")
        found.append(tuple(thread for thread in threads if thread in wanted))
        placed.update(threads)
    return tuple(found)
