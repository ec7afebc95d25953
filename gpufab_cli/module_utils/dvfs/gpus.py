"""The GPUs of a node, through NVML where the node has it and nvidia-smi otherwise: one interface, two backends."""

from dataclasses import replace
from typing import Dict, Iterable, Optional, Protocol, Tuple, Union

from ..change import ABSENT, Absent, Unknown
from ..devices import Devices
from ..host import Host, Reader
from . import nvml, smi
from .seen import GpuSeen

DRIVER = "nvidia"

Found = Tuple[Union[Dict[str, GpuSeen], Unknown], Dict[str, str]]


class Setter(Protocol):
    """Sets one GPU at a time. Each method raises HostError; nothing is ever taken for done that the driver ignored."""

    def persistence(self, pci: str, on: bool) -> None:
        """Persistence mode."""

    def power_limit(self, pci: str, watts: float) -> None:
        """The power limit."""

    def graphics(self, pci: str, clocks: Optional[Tuple[int, ...]]) -> None:
        """Lock the graphics clock between two, or unlock it."""

    def memory(self, pci: str, clocks: Optional[Tuple[int, ...]]) -> None:
        """Lock the memory clock between two, or unlock it."""

    def ecc(self, pci: str, on: bool) -> None:
        """ECC from the next GPU reset on."""

    def mig(self, pci: str, on: bool) -> None:
        """Multi-instance mode."""


def setter(host: Host) -> Setter:
    """What sets GPUs on this node."""
    return nvml.NvmlSetter(host) if host.has_nvml() else smi.SmiSetter(host)


def read(host: Reader, devices: Devices, wanted: Iterable[str], *, clocks: bool) -> Found:
    """The wanted GPUs, and what is known of those that cannot be reached.

    Without the driver no tool is asked: nvidia-smi would load it.
    """
    drivers = {gpu.pci: gpu.driver for gpu in devices.gpus}
    lost = {pci: _why(drivers.get(pci)) for pci in wanted if drivers.get(pci) != DRIVER}
    bound = [pci for pci in wanted if pci not in lost]
    if not bound:
        loaded = any(driver == DRIVER for driver in drivers.values())
        return ({}, lost) if loaded or not lost or set(lost) - set(drivers) else (Unknown(NO_DRIVER), {})
    gpus, unreached = nvml.read(host, bound, clocks=clocks) if host.has_nvml() else smi.read(host, bound, clocks=clocks)
    if isinstance(gpus, Unknown):
        return gpus, lost
    loads = {pci: replace(gpu, load=_load(host, pci)) for pci, gpu in gpus.items()}
    return loads, {**lost, **unreached}


NO_DRIVER = "the nvidia driver is not loaded"


def _why(driver: Optional[str]) -> str:
    if driver is None:
        return "there is no GPU at this address"
    return f"its driver is {driver}" if driver else "it has no driver"


def _load(host: Reader, pci: str) -> Union[int, Absent, Unknown]:
    """Which binding of the driver this is. The link is made anew at each, and sysfs never gives out a number twice
    (kernfs_new_node, idr_alloc_cyclic), so a driver that was reloaded shows. A GPU reset alone does not."""
    inode = host.inode(f"/sys/bus/pci/drivers/{DRIVER}/{pci}")
    return Unknown(f"no link of the driver to {pci}") if inode is ABSENT else inode
