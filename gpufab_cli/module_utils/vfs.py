"""The virtual functions of a PCI function, and who uses them. Source: drivers/pci/iov.c and its sysfs ABI."""

import re
from dataclasses import dataclass
from typing import Dict, Tuple, Union

from .change import Absent, Unknown
from .devices import INFINIBAND, NET, PCI_DEVICES
from .host import Reader
from .idle import DAEMONS
from .processes import Process, held_files
from .texts import natural

HELD = r"/dev/(vfio/\d+|infiniband/uverbs\d+)"
VFIO = "vfio"

Holders = Union[Dict[str, Tuple[Process, ...]], Unknown]
Users = Union[Tuple[str, ...], Unknown]


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


def holders(host: Reader) -> Holders:
    """Who holds VFIO groups and verbs devices open, by file: one look at all processes, for all VFs."""
    return held_files(host, HELD)


def users(host: Reader, vf: Vf, held: Holders) -> Users:
    """Who uses a VF, in words: a virtual machine or another user-space driver, a container, a bridge, verbs."""
    if isinstance(held, Unknown):
        return held
    group = str(host.link(f"{PCI_DEVICES}/{vf.pci}/iommu_group")).rpartition("/")[2]
    verbs = _names(host, vf.pci, "infiniband_verbs")
    files = [f"/dev/vfio/{group}", *(f"/dev/infiniband/{name}" for name in verbs)]
    processes = [p for file in files for p in held.get(file, ()) if p.name not in DAEMONS]
    found = [f"{p.name} (process {p.pid}) holds VF {vf.index} ({vf.pci})" for p in processes]
    # sysfs shows only the netdevs of the reader's own network namespace; the directory shows that there is one.
    if vf.driver and not vf.driver.startswith(VFIO) and host.names(f"{PCI_DEVICES}/{vf.pci}/net") == ():
        found.append(f"the netdev of VF {vf.index} ({vf.pci}) is in another network namespace")
    for netdev in vf.netdevs:
        entries = host.names(f"{NET}/{netdev}")
        uppers = [name[6:] for name in (entries if isinstance(entries, tuple) else ()) if name.startswith("upper_")]
        found += [f"{upper} is on top of {netdev} (VF {vf.index})" for upper in uppers]
    return tuple(found)


def rdma_guid(host: Reader, vf: Vf) -> Union[str, Absent, Unknown]:
    """The node GUID that the VF's RDMA device has, as sysfs prints it; ABSENT without such a device."""
    return host.read(f"{INFINIBAND}/{vf.rdma[0]}/node_guid") if vf.rdma else Absent.ABSENT
