"""Look at the clocks and power of a node."""

from typing import Dict, Iterable, Tuple, Union

from ..change import Absent, Unknown
from ..devices import Devices
from ..host import Reader, sha256
from . import cpu, gpus, hooks, jobs, services
from .seen import CpuSeen, DvfsSeen, GpuSeen, Service
from .want import DvfsWant, GpuPolicy


def gather(host: Reader, devices: Devices, want: DvfsWant) -> DvfsSeen:
    """Read what the wish is about, and who else sets it."""
    found = services.read(host)
    seen, lost = _gpus(host, devices, want, found)
    return DvfsSeen(
        gpus=seen,
        lost=lost,
        cpu=cpu.read(host, want.cpu) if want.cpu is not None else CpuSeen(),
        services=found,
        writers=services.writers(host),
        files=_files(host, want),
        jobs=jobs.read(host) if want.gpus else (),
    )


def _gpus(
    host: Reader, devices: Devices, want: DvfsWant, found: Union[Dict[str, Service], Unknown]
) -> Tuple[Union[Dict[str, GpuSeen], Unknown], Dict[str, str]]:
    """What is set before nvidia-persistenced has started may be lost with it: then it is not known yet."""
    wanted = [gpu.pci for gpu in want.gpus]
    if not wanted:
        return {}, {}
    if isinstance(found, Unknown):
        return Unknown(f"cannot tell whether {services.PERSISTENCED} is about to start: {found.reason}"), {}
    for unit in (services.PERSISTENCED, services.FABRIC_MANAGER):
        if unit in found and found[unit].starting:
            return Unknown(f"{unit} is about to start"), {}
    return gpus.read(host, devices, wanted, clocks=_clocks_wanted(want.policies.values()))


def _clocks_wanted(policies: Iterable[GpuPolicy]) -> bool:
    return any(policy.graphics_mhz or policy.memory_mhz for policy in policies)


def _files(host: Reader, want: DvfsWant) -> Dict[str, Union[str, Absent, Unknown]]:
    if want.jobs is None:
        return {}
    found: Dict[str, Union[str, Absent, Unknown]] = {path: _digest(host, path) for path in hooks.paths(want.jobs)}
    found.update({link: host.link(link) for link, _ in hooks.LINKS})
    return found


def _digest(host: Reader, path: str) -> Union[str, Absent, Unknown]:
    content = host.read_bytes(path)
    return sha256(content) if isinstance(content, bytes) else content
