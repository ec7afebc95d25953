"""The device files by which programs use NICs and GPUs, and which PCI functions each of them is of.

Sources: drivers/infiniband/core/uverbs_main.c (class infiniband_verbs), drivers/vfio (groups of class vfio, cdevs of
class vfio-dev, also for iommufd), Documentation/driver-api/vfio-mediated-device.rst.
"""

import re
from typing import Dict, FrozenSet, Iterable, Iterator, Mapping, Tuple, Union

from .change import Unknown
from .host import Reader
from .processes import DeviceFile

PCI_DEVICES = "/sys/bus/pci/devices"
VERBS = "/sys/class/infiniband_verbs"
VFIO = "/sys/class/vfio"
_PCI = r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]"
_OTHER_CLASS = re.compile(r"0x(?!02|030[02]|0680|12)")  # not network, display or 3D, NVSwitch, accelerator
_UUID = re.compile(r"[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}")

Files = Mapping[DeviceFile, FrozenSet[str]]
"""The functions, by PCI address, that each device file is of; none where sysfs does not say."""


def last_function(link: object) -> FrozenSet[str]:
    """The PCI function that a device of sysfs is below, by the text of a link to it; none of a virtual device."""
    found = re.findall(_PCI, link) if isinstance(link, str) else []
    return frozenset(found[-1:])


def find(host: Reader) -> Union[Files, Unknown]:
    """All of them on the node: verbs, and VFIO of NICs and GPUs."""
    found: Dict[DeviceFile, FrozenSet[str]] = {}
    for folder, look in ((VERBS, _verbs), (PCI_DEVICES, _vfio)):
        names = host.names(folder)
        if isinstance(names, Unknown):
            return names
        for name in names if isinstance(names, tuple) else ():
            for file, functions in look(host, name):
                found[file] = found.get(file, frozenset()) | functions
    return found


def of(files: Files, functions: Iterable[str]) -> Dict[DeviceFile, FrozenSet[str]]:
    """Those of some functions, and those of which it cannot be told."""
    wanted = frozenset(functions)
    return {file: own for file, own in files.items() if not own or own & wanted}


def _number(host: Reader, folder: str) -> str:
    text = host.read(f"{folder}/dev")
    return text if isinstance(text, str) and re.fullmatch(r"\d{1,10}:\d{1,10}", text) else ""


def _verbs(host: Reader, name: str) -> Iterator[Tuple[DeviceFile, FrozenSet[str]]]:
    if re.fullmatch(r"uverbs\d+", name):
        functions = last_function(host.link(f"{VERBS}/{name}"))
        yield DeviceFile(_number(host, f"{VERBS}/{name}"), f"/dev/infiniband/{name}"), functions


def _vfio(host: Reader, pci: str) -> Iterator[Tuple[DeviceFile, FrozenSet[str]]]:
    """A function's VFIO group, its own VFIO devices, and the groups of mediated devices made of it."""
    folder = f"{PCI_DEVICES}/{pci}"
    if _OTHER_CLASS.match(str(host.read(f"{folder}/class"))):
        return
    names = host.names(folder)
    mediated = [name for name in (names if isinstance(names, tuple) else ()) if _UUID.fullmatch(name)]
    for place in (folder, *(f"{folder}/{name}" for name in mediated)):
        link = host.link(f"{place}/iommu_group")
        if isinstance(link, str):
            group = link.rpartition("/")[2]
            for name in (group, f"noiommu-{group}"):
                yield DeviceFile(_number(host, f"{VFIO}/{name}"), f"/dev/vfio/{name}"), frozenset({pci})
        own = host.names(f"{place}/vfio-dev")
        for name in own if isinstance(own, tuple) else ():
            number = _number(host, f"{place}/vfio-dev/{name}")
            yield DeviceFile(number, f"/dev/vfio/devices/{name}"), frozenset({pci})
