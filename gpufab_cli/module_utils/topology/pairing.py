"""Which GPU goes with which rail port, as the PCI tree has it.

Distance decides alone: what is on a rail has been sorted out before (link layer, speed, role). Relations are those of a
tree, so GPUs that share their nearest ports share all of them: each such group is paired on its own, and a GPU or port
that is missing moves no pair of another group.
"""

from collections import defaultdict
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import Dict, Iterable, List, Protocol, Sequence, Set, Tuple

from .numa import Numa
from .relation import Placed, Relation, relation

_TRIES = 5000  # ways to lay two rows against each other that are compared; real machines have fewer than 2000


class Machine(Protocol):
    """The devices of a node."""

    @property
    def gpus(self) -> Sequence[Placed]:
        """Its GPUs."""

    @property
    def nics(self) -> Sequence[Placed]:
        """Its NIC functions."""

    @property
    def numa(self) -> Numa:
        """Its NUMA nodes."""


@dataclass(frozen=True)
class Pair:
    """A GPU and a rail port by PCI address, and how they are connected."""

    gpu: str
    nic: str
    relation: Relation


@dataclass(frozen=True)
class Pairing:
    """``pairs`` share a NUMA node at least; ``remote`` are GPUs that reach any rail only between sockets.

    A GPU of which no connection to a rail is known is in neither.
    """

    pairs: Tuple[Pair, ...] = ()
    remote: Tuple[Pair, ...] = ()

    def nics_of(self, gpu: str) -> Tuple[str, ...]:
        """The ports of a GPU, nearest first; of a remote one the port that it does best to use all the same."""
        return tuple(pair.nic for pair in (*self.pairs, *self.remote) if pair.gpu == gpu)

    def gpus_of(self, nic: str) -> Tuple[str, ...]:
        """The GPUs of a port, remote ones last."""
        return tuple(pair.gpu for pair in (*self.pairs, *self.remote) if pair.nic == nic)


def pair(machine: Machine, rails: Iterable[str]) -> Pairing:
    """Pair the GPUs with the rail ports at these PCI addresses; both in the order of their addresses.

    Ports that are as near to a group of GPUs as its nearest ones belong to it: two GPUs share a port where there is one
    for both, and one GPU has two where a card has two. Ports that are nobody's nearest are in no pair.
    """
    wanted = set(rails)
    ports = sorted((nic for nic in machine.nics if nic.pci in wanted), key=lambda nic: order(nic.pci))
    gpus = sorted(machine.gpus, key=lambda gpu: order(gpu.pci))
    groups: Dict[Tuple[Relation, Tuple[int, ...]], List[int]] = defaultdict(list)
    for index, gpu in enumerate(gpus if ports else ()):
        near, best = _nearest(gpu, ports, machine.numa)
        if near is not Relation.UNKNOWN:
            groups[near, best].append(index)
    found: List[Pair] = []
    taken: Set[str] = set()
    for (near, best), members in sorted(groups.items(), key=lambda item: (item[0][0].rank, item[1])):
        free = [ports[index] for index in best if ports[index].pci not in taken and near is not Relation.SYS]
        usable = free or [ports[index] for index in best]
        places = [order(gpus[index].pci) for index in members], [order(nic.pci) for nic in usable]
        matched = match(*places) if free else _one_each(*places)
        found += [Pair(gpus[members[g]].pci, usable[n].pci, near) for g, n in matched]
        taken |= {item.nic for item in found}
    found.sort(key=lambda item: (order(item.gpu), order(item.nic)))
    return Pairing(
        tuple(item for item in found if item.relation is not Relation.SYS),
        tuple(item for item in found if item.relation is Relation.SYS),
    )


def _nearest(gpu: Placed, ports: Sequence[Placed], numa: Numa) -> Tuple[Relation, Tuple[int, ...]]:
    """How near the nearest ports of a GPU are, and which they are."""
    relations = [relation(gpu, nic, numa) for nic in ports]
    best = min(relations, key=lambda item: item.rank, default=Relation.UNKNOWN)
    return best, tuple(index for index, item in enumerate(relations) if item is best)


def order(pci: str) -> int:
    """A PCI address as a number: 0000:9a:00.1 and 00000009:01:00.0 compare as the bus counts them."""
    domain, bus, device = pci.split(":")
    slot, _, function = device.partition(".")
    return int(domain, 16) << 16 | int(bus, 16) << 8 | int(slot, 16) << 3 | int(function)


def match(gpus: Sequence[int], nics: Sequence[int]) -> List[Tuple[int, int]]:
    """Match two ascending rows of places, all equally near, by index: in order, and shared evenly.

    Where one is missing from a row, the gap shows it: the rows are laid so that distances between partners agree best.
    """
    if not gpus or not nics:
        return []
    if len(gpus) % len(nics) == 0:
        each = len(gpus) // len(nics)
        return [(index, index // each) for index in range(len(gpus))]
    if len(nics) % len(gpus) == 0:
        each = len(nics) // len(gpus)
        return [(index // each, index) for index in range(len(nics))]
    return _one_each(gpus, nics)


def _one_each(gpus: Sequence[int], nics: Sequence[int]) -> List[Tuple[int, int]]:
    """As :func:`match`, but no GPU gets more than one port."""
    if len(gpus) <= len(nics):
        return list(enumerate(_laid(gpus, nics, 1)))
    own = {gpu: nic for nic, gpu in enumerate(_laid(nics, gpus, -1))}
    return [(g, own[g] if g in own else _closest(place, nics)) for g, place in enumerate(gpus)]


def _laid(few: Sequence[int], many: Sequence[int], side: int) -> Tuple[int, ...]:
    """For each of the few, in order, which of the many; ``side`` is 1 where these rather come behind, else -1.

    Ports mostly come behind their GPUs.
    """

    def uneven(chosen: Tuple[int, ...]) -> Tuple[int, int, int]:
        gaps = sorted(many[index] - place for index, place in zip(chosen, few))
        middle = gaps[len(gaps) // 2]
        return sum(abs(gap - middle) for gap in gaps), abs(middle), -side * middle

    if comb(len(many), len(few)) > _TRIES:
        return tuple(range(len(few)))
    return min(combinations(range(len(many)), len(few)), key=uneven)


def _closest(place: int, row: Sequence[int]) -> int:
    return min(range(len(row)), key=lambda index: (abs(row[index] - place), index))
