"""Which CPU takes which interrupt of a port. Pure, and the same whatever became of the other ports."""

from typing import Iterator, List, Sequence, Tuple, Union

from ..change import ABSENT, Absent, Change, Finding, Unknown
from ..devices import Devices, Nic
from ..texts import natural
from .seen import Irqs, NumaSeen
from .want import PortWant

CODE = "numa.irq"


def ring(cores: Sequence[Tuple[int, ...]], position: int) -> List[int]:
    """CPUs in the order in which a port's interrupts take them: a thread of every core first, then their siblings.

    Where a port begins follows from its position alone, so that one that is missing moves none of the others.
    """
    depth = max(map(len, cores), default=0)
    levels = [[core[level] for core in cores if len(core) > level] for level in range(depth)]
    starts = [int(_between(position) * len(level)) for level in levels]
    return [cpu for level, start in zip(levels, starts) for cpu in level[start:] + level[:start]]


def _between(number: int) -> float:
    """0, 1/2, 1/4, 3/4, 1/8, 5/8, …, the bits of the number mirrored: any run of neighbours lies evenly below 1."""
    part, step = 0.0, 0.5
    while number:
        part += step * (number & 1)
        number, step = number >> 1, step / 2
    return part


def spread(irqs: Irqs, managed: Sequence[str], cpus: Sequence[int]) -> Irqs:
    """Each interrupt with the one CPU that is to take it; the place of a managed one is left free.

    So it makes no difference to the others when one turns out to be managed.
    """
    every = sorted({number for number, _ in irqs} | set(managed), key=lambda number: natural(number) or 0)
    places = {number: cpus[index % len(cpus)] for index, number in enumerate(every)}
    return tuple((number, str(places[number])) for number, _ in irqs)


def changes(devices: Devices, seen: NumaSeen, port: PortWant, nic: Nic) -> Iterator[Change]:
    """The interrupts of one port that are elsewhere."""
    found, cpus = seen.ports[port.pci].irqs, _cpus(devices, seen, port, nic)
    path = (port.pci, "irq")
    if isinstance(found, Unknown) or isinstance(cpus, Unknown):
        reason = found if isinstance(found, Unknown) else cpus
        yield Change(path, reason, (), CODE)
    elif cpus and not isinstance(found, Absent):
        wanted = spread(found, seen.ports[port.pci].managed, cpus)
        if found != wanted:
            yield Change(path, found, wanted, CODE)


def _cpus(devices: Devices, seen: NumaSeen, port: PortWant, nic: Nic) -> Union[Tuple[int, ...], Unknown, None]:
    node = devices.numa.local(nic.numa_node)
    cores = seen.cores.get(str(node.id)) if node is not None else None
    if cores is None or isinstance(cores, Unknown):
        return cores
    return tuple(ring(cores, port.position))


def findings(devices: Devices, seen: NumaSeen, port: PortWant, nic: Nic) -> Iterator[Finding]:
    """Why interrupts of a port are not gpufab's to move."""
    state, path = seen.ports[port.pci], (port.pci, "irq")
    node = devices.numa.local(nic.numa_node)
    if node is None:
        yield Finding("numa.node-unknown", path, f"the port's NUMA node is {nic.numa_node}", unknown=True)
    elif seen.cores.get(str(node.id)) == ():
        yield Finding("numa.no-cpu", path, f"all CPUs of NUMA node {node.id} are isolated ({seen.withheld})")
    if state.irqs is ABSENT:
        yield Finding("numa.no-irq", path, "its driver has no message-signalled interrupts")
    if state.managed:
        words = f"{len(state.managed)} interrupts are the kernel's to place: {', '.join(state.managed)}"
        yield Finding("numa.irq-managed", path, words)
