"""What is found of the GPU software of one node: driver, Fabric Manager, persistence daemon, GPUDirect RDMA."""

from dataclasses import dataclass, field
from typing import Dict, Tuple, Union

from ..change import ABSENT, Absent, Unknown
from ..dvfs.seen import Service

Text = Union[str, Absent, Unknown]
Flag = Union[bool, Unknown]


@dataclass(frozen=True)
class DriverSeen:
    """The driver in its three places, by version. ABSENT: it is not there."""

    running: Text
    """The kernel module that is loaded."""
    on_disk: Text
    """The kernel module that the running kernel would load."""
    libraries: Text
    """The libraries that programs load."""
    open_modules: Flag
    """Whether the running modules are NVIDIA's open ones, which DMA-BUF needs."""


@dataclass(frozen=True)
class PeermemSeen:
    """nvidia_peermem, and what the running RDMA stack offers."""

    version: Text
    """Of the loaded module; ABSENT: not loaded."""
    registered: bool = False
    """Whether the loaded ib_core and the loaded driver both name it as a user of theirs."""
    peer_memory: Flag = False
    """Whether the running ib_core has the API that it registers with; the kernel's own has not."""
    dmabuf: Flag = False
    """Whether the running RDMA stack can register memory by DMA-BUF."""
    refused: Tuple[str, ...] = ()
    """What the kernel said when it refused the module since the last boot."""


@dataclass(frozen=True)
class GpuStackSeen:
    """All of it. ``gpudirect`` is ABSENT where it is not asked for."""

    driver: DriverSeen
    nvswitches: Union[int, Unknown] = 0
    """How many NVSwitches the node has: where there are any, GPUs need Fabric Manager."""
    fabric_manager: Text = ABSENT
    """Version of the installed Fabric Manager."""
    fabric: Union[Dict[str, str], Absent, Unknown] = ABSENT
    """Each GPU's registration with the NVLink fabric, by PCI address; ABSENT where the driver tells of none."""
    services: Union[Dict[str, Service], Unknown] = field(default_factory=dict)
    gpudirect: Union[PeermemSeen, Absent] = ABSENT
    old_peermem: Tuple[str, ...] = ()
    """Where nv_peer_mem is still named, which nvidia_peermem has replaced."""
