"""Interrupts of a PCI function and the CPUs that may take them (kernel: core-api/irq/irq-affinity.rst).

Some drivers have the kernel choose the CPUs of their interrupts. Such managed ones refuse another choice: newer kernels
make the file read-only, older ones fail the write with EIO. What was learnt by that is noted for as long as the system
runs, by device and number: a driver that is loaded anew may leave its numbers to another device.
"""

import errno
import json
from typing import FrozenSet, Optional, Tuple, Union

from ..change import Absent, Unknown
from ..devices import PCI_DEVICES
from ..host import Host, HostError, Reader
from ..texts import natural, parse_json
from ..topology.cpus import parse_cpus
from .seen import Irqs

IRQ = "/proc/irq"
NOTE = "/run/gpufab/managed-irqs.json"
WRITABLE = 0o222
Found = Tuple[Union[Irqs, Absent, Unknown], Tuple[str, ...]]


def _path(number: str) -> str:
    return f"{IRQ}/{number}/smp_affinity_list"


def read(host: Reader, pci: str) -> Found:
    """The interrupts that can be moved with their CPUs, and the numbers of those that cannot."""
    names = host.names(f"{PCI_DEVICES}/{pci}/msi_irqs")
    if not isinstance(names, tuple):
        return names, ()
    numbers = sorted((name for name in names if natural(name) is not None), key=int)
    noted = _noted(host)
    managed = tuple(number for number in numbers if _entry(pci, number) in noted or _read_only(host, number))
    found = []
    for number in numbers:
        cpus = host.read(_path(number))
        if isinstance(cpus, Unknown):
            return cpus, managed
        if number not in managed and isinstance(cpus, str):  # a vector that no driver has asked for has no file
            if parsed(cpus) is None:
                return Unknown(f"{_path(number)}: {cpus!r:.80} is no list of CPUs"), managed
            found.append((number, cpus.strip()))
    return tuple(found), managed


def _read_only(host: Reader, number: str) -> bool:
    mode = host.mode(_path(number))
    return isinstance(mode, int) and not mode & WRITABLE


def _noted(host: Reader) -> FrozenSet[str]:
    text = host.read(NOTE)
    try:
        found = parse_json(text) if isinstance(text, str) else ()
    except ValueError:  # cut short: it is learnt anew
        return frozenset()
    return frozenset(entry for entry in found if isinstance(entry, str)) if isinstance(found, list) else frozenset()


def _entry(pci: str, number: str) -> str:
    return f"{pci} {number}"


def parsed(text: str) -> Optional[Tuple[int, ...]]:
    """The CPUs of a list; None where it is none."""
    try:
        return parse_cpus(text)
    except ValueError:
        return None


def write(host: Host, pci: str, wanted: Irqs) -> None:
    """Move interrupts of a function; one that turns out to be managed is noted and left.

    Raises:
        HostError: one could not be moved for another reason.
    """
    for number, cpus in wanted:
        if host.read(_path(number)) != cpus and _refused(host, number, cpus):
            host.put(NOTE, json.dumps(sorted(_noted(host) | {_entry(pci, number)})).encode(), 0o600)


def _refused(host: Host, number: str, cpus: str) -> bool:
    """Whether the kernel refuses for good: a managed interrupt refuses the second time too."""
    for _ in range(2):
        try:
            host.set(_path(number), cpus)
        except HostError as error:
            if getattr(error.__cause__, "errno", None) != errno.EIO:
                raise
        else:
            return False
    return True
