"""What one rank is bound to: the CPUs and the memory next to its GPU. Pure."""

from dataclasses import dataclass, replace
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
    uuid: str = ""


@dataclass(frozen=True)
class Machine:
    """What a rank can be bound to. GPUs are in the order of CUDA_DEVICE_ORDER=PCI_BUS_ID.

    ``hidden`` are those that this process may not use, by PCI address: CUDA counts the rest as if they were all.
    """

    gpus: Tuple[Place, ...]
    nics: Tuple[Place, ...]
    numa: Numa
    hidden: Tuple[str, ...] = ()

    @property
    def open(self) -> Tuple[Place, ...]:
        """The GPUs as CUDA counts them here."""
        gpus = [gpu for gpu in self.gpus if gpu.pci not in self.hidden]
        return tuple(replace(gpu, name=str(number)) for number, gpu in enumerate(gpus))


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
    if machine.hidden and not machine.open:
        raise BindError(f"none of the {len(machine.gpus)} GPUs may be used by this process")
    gpus = _visible(machine.open, visible)
    if len(gpus) == 1 and visible is not None:
        gpu = gpus[0]  # the scheduler gives each rank its own
    elif 0 <= rank < len(gpus):
        gpu = gpus[rank]
    else:
        raise BindError(f"local rank {rank}, and there are {len(gpus)} GPUs: one rank a GPU")
    return _bound(machine, gpu)


def chosen(machine: Machine, number: int) -> Binding:
    """The binding to a GPU by its number among all of the machine, hidden ones included.

    Raises:
        BindError: there is no such GPU, or it is another job's.
    """
    if not 0 <= number < len(machine.gpus):
        raise BindError(f"GPU {number}, and there are {len(machine.gpus)} GPUs")
    pci = machine.gpus[number].pci
    gpu = next((gpu for gpu in machine.open if gpu.pci == pci), None)
    if gpu is None:
        raise BindError(f"GPU {number} ({pci}) may not be used by this process")
    return _bound(machine, gpu)


def _bound(machine: Machine, gpu: Place) -> Binding:
    """What is next to a GPU."""
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
    found = [_named(gpus, word.strip(), visible) for word in visible.split(",") if word.strip()]
    if not found:
        raise BindError(f"CUDA_VISIBLE_DEVICES={visible}, and there are {len(gpus)} GPUs")
    return tuple(found)


def _named(gpus: Sequence[Place], word: str, visible: str) -> Place:
    """A GPU by its number or, as CUDA takes it too, the beginning of its UUID."""
    number = natural(word)
    if number is None:
        found = [gpu for gpu in gpus if word.startswith("GPU-") and gpu.uuid.startswith(word)]
        if len(found) != 1:
            raise BindError(f"CUDA_VISIBLE_DEVICES={visible}: which GPU {word} is, is not known; give --gpu NUMBER")
        return found[0]
    if number >= len(gpus):
        raise BindError(f"CUDA_VISIBLE_DEVICES={visible}, and there are {len(gpus)} GPUs")
    return gpus[number]


def _memory(numa: Numa, node: NumaNode) -> Tuple[int, ...]:
    """The node itself, or the nearest that has memory and CPUs: what is a GPU's own memory has none."""
    if node.memory:
        return (node.id,)
    far = dict(node.distances)
    others = sorted((far[other.id], other.id) for other in numa.with_cpus if other.memory and other.id in far)
    return (others[0][1],) if others else ()
