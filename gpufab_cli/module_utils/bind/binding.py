"""What one rank is bound to: the CPUs and the memory next to its GPU. Pure."""

from dataclasses import dataclass
from typing import Optional, Sequence, Tuple

from ..texts import natural
from ..topology.cpus import parse_cpus
from ..topology.numa import Numa, NumaNode
from ..topology.pairing import pair


class BindError(Exception):
    """What keeps a rank from being bound, in words for whoever started it."""


@dataclass(frozen=True)
class Place:
    """A PCI function with its place; ``name`` is what the rank knows it by."""

    name: str
    pci: str
    numa_node: int
    above: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Machine:
    """What a rank can be bound to. GPUs are in the order of CUDA_DEVICE_ORDER=PCI_BUS_ID."""

    gpus: Tuple[Place, ...]
    nics: Tuple[Place, ...]
    numa: Numa


@dataclass(frozen=True)
class Binding:
    """The GPU of a rank and what is next to it. No CPUs: the machine does not say which are."""

    gpu: Place
    cpus: Tuple[int, ...]
    memory: Tuple[int, ...]
    nics: Tuple[str, ...]


def choose(machine: Machine, rank: int, visible: Optional[str]) -> Binding:
    """The binding of a local rank.

    Args:
        rank: of the processes on this node.
        visible: CUDA_VISIBLE_DEVICES, where a scheduler has set it.

    Raises:
        BindError: there is no GPU for the rank, or none can be told.
    """
    gpus = _visible(machine.gpus, visible)
    if len(gpus) == 1 and visible is not None:
        gpu = gpus[0]  # the scheduler gives each rank its own
    elif 0 <= rank < len(gpus):
        gpu = gpus[rank]
    else:
        raise BindError(f"local rank {rank}, and there are {len(gpus)} GPUs: one rank a GPU")
    node = machine.numa.local(gpu.numa_node)
    nics = pair(machine, [nic.pci for nic in machine.nics]).nics_of(gpu.pci)
    return Binding(
        gpu,
        parse_cpus(node.cpus) if node is not None else (),
        _memory(machine.numa, node) if node is not None else (),
        tuple(nic.name for pci in nics for nic in machine.nics if nic.pci == pci),
    )


def _visible(gpus: Sequence[Place], visible: Optional[str]) -> Tuple[Place, ...]:
    if visible is None:
        return tuple(gpus)
    words = [word.strip() for word in visible.split(",") if word.strip()]
    numbers = [number for number in map(natural, words) if number is not None]
    if len(numbers) != len(words):
        raise BindError(f"CUDA_VISIBLE_DEVICES={visible} names GPUs otherwise than by number; give --gpu NUMBER")
    beyond = [number for number in numbers if number >= len(gpus)]
    if beyond or not numbers:
        raise BindError(f"CUDA_VISIBLE_DEVICES={visible}, and there are {len(gpus)} GPUs")
    return tuple(gpus[number] for number in numbers)


def _memory(numa: Numa, node: NumaNode) -> Tuple[int, ...]:
    """The node itself, or the nearest that has memory and CPUs: what is a GPU's own memory has none."""
    if node.memory:
        return (node.id,)
    far = dict(node.distances)
    others = sorted((far[other.id], other.id) for other in numa.with_cpus if other.memory and other.id in far)
    return (others[0][1],) if others else ()
