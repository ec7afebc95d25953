"""The virtual functions of a PCI function, and who uses them. Source: drivers/pci/iov.c and its sysfs ABI."""

import re
from dataclasses import dataclass
from typing import Iterable, Mapping, Optional, Tuple, Union

from . import daemons, device_files, processes
from .change import Absent, Unknown
from .device_files import Files
from .devices import INFINIBAND, NET, PCI_DEVICES
from .host import Reader
from .processes import DeviceFile, Process
from .texts import natural

VFIO = "vfio"
MOST = 12
"""So many users are named; the others are counted. A user may have any number of processes."""

Users = Union[Tuple[str, ...], Unknown]


@dataclass(frozen=True)
class Held:
    """The device files of the node, and of each that is in use the processes that hold it, daemons left out."""

    files: Files
    holders: Mapping[DeviceFile, Tuple[Process, ...]]

    def by(self, *functions: str) -> Tuple[Process, ...]:
        """Who holds devices of some functions."""
        own = [file for file, pcis in self.files.items() if pcis & frozenset(functions)]
        return tuple(dict.fromkeys(process for file in own for process in self.holders.get(file, ())))


Holders = Union[Held, Unknown]


@dataclass(frozen=True)
class Vf:
    """One virtual function: its PCI address, its driver ("" for none), and its devices by name."""

    index: int
    pci: str
    driver: str
    netdevs: Tuple[str, ...]
    rdma: Tuple[str, ...]


def read_count(host: Reader, pci: str, name: str = "sriov_numvfs") -> Union[int, Absent, Unknown]:
    """A number of the SR-IOV capability; ABSENT for a function without it."""
    text = host.read(f"{PCI_DEVICES}/{pci}/{name}")
    if not isinstance(text, str):
        return text
    number = natural(text)
    return Unknown(f"{pci} {name}: {text!r} is not a number") if number is None else number


def any_enabled(host: Reader, pci: str) -> bool:
    """Whether a function has VFs; one without the capability has none."""
    count = read_count(host, pci)
    return isinstance(count, int) and count > 0


def read(host: Reader, pci: str) -> Tuple[Vf, ...]:
    """The VFs that a function has now, by index."""
    names = host.names(f"{PCI_DEVICES}/{pci}")
    indexes = [
        int(name[6:]) for name in (names if isinstance(names, tuple) else ()) if re.fullmatch(r"virtfn\d+", name)
    ]
    return tuple(_vf(host, pci, index) for index in sorted(indexes))


def _vf(host: Reader, pf: str, index: int) -> Vf:
    pci = str(host.link(f"{PCI_DEVICES}/{pf}/virtfn{index}")).rpartition("/")[2]
    driver = host.link(f"{PCI_DEVICES}/{pci}/driver")
    return Vf(
        index,
        pci,
        driver.rpartition("/")[2] if isinstance(driver, str) else "",
        _names(host, pci, "net"),
        _names(host, pci, "infiniband"),
    )


def _names(host: Reader, pci: str, kind: str) -> Tuple[str, ...]:
    names = host.names(f"{PCI_DEVICES}/{pci}/{kind}")
    return names if isinstance(names, tuple) else ()


def holders(host: Reader, functions: Optional[Iterable[str]] = None) -> Holders:
    """Who holds the devices of some functions open, by default of all: one look at all processes."""
    files = device_files.find(host)
    if not isinstance(files, Unknown) and functions is not None:
        files = device_files.of(files, functions)
    found = files if isinstance(files, Unknown) else processes.holders(host, files)
    if isinstance(files, Unknown) or isinstance(found, Unknown):
        return files if isinstance(files, Unknown) else found  # type: ignore[return-value]
    excused = {p: daemons.is_idle(host, p) for p in dict.fromkeys(p for held in found.values() for p in held)}
    return Held(files, {file: tuple(p for p in held if not excused[p]) for file, held in found.items()})


def users(host: Reader, vf: Vf, held: Holders) -> Users:
    """Who uses a VF, in words: a virtual machine or another user-space driver, a container, a bridge, verbs."""
    if isinstance(held, Unknown):
        return held
    found = [f"{p.name} (process {p.pid}) holds VF {vf.index} ({vf.pci})" for p in held.by(vf.pci)]
    found += elsewhere(host, vf)
    for netdev in vf.netdevs:
        entries = host.names(f"{NET}/{netdev}")
        uppers = [name[6:] for name in (entries if isinstance(entries, tuple) else ()) if name.startswith("upper_")]
        found += [f"{upper} is on top of {netdev} (VF {vf.index})" for upper in uppers]
    return some(found)


def elsewhere(host: Reader, vf: Vf) -> Tuple[str, ...]:
    """Whether a container or the like has the VF's netdev, in words.

    sysfs shows only the netdevs of the reader's own network namespace; the directory shows that there is one.
    """
    if vf.driver and not vf.driver.startswith(VFIO) and host.names(f"{PCI_DEVICES}/{vf.pci}/net") == ():
        return (f"the netdev of VF {vf.index} ({vf.pci}) is in another network namespace",)
    return ()


def some(found: Iterable[str]) -> Tuple[str, ...]:
    """Each once; of many the first, and how many more there are."""
    words = tuple(dict.fromkeys(found))
    return words if len(words) <= MOST else (*words[:MOST], f"and {len(words) - MOST} more")


def rdma_guid(host: Reader, vf: Vf) -> Union[str, Absent, Unknown]:
    """The node GUID that the VF's RDMA device has, as sysfs prints it; ABSENT without such a device."""
    return host.read(f"{INFINIBAND}/{vf.rdma[0]}/node_guid") if vf.rdma else Absent.ABSENT
