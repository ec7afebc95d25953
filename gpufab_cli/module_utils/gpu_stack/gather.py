"""Look at the GPU software of a node.

Sources: /proc/driver/nvidia/version and the module's version file of NVIDIA's driver (its README, "procfs interface"),
the kernel's sysfs ABI for modules (initstate, holders), the file name that the NVML library's link leads to.
"""

import re
from typing import Dict, Iterator, Tuple, Union

from ..change import ABSENT, Absent, Unknown
from ..devices import PCI_DEVICES, Devices
from ..dvfs import services
from ..host import Reader
from .gpudirect import peermem
from .seen import DriverSeen, Flag, GpuStackSeen, Text
from .want import GpuStackWant

MODULE = "/sys/module/nvidia"
PROC = "/proc/driver/nvidia/version"
LIBRARY = "libnvidia-ml.so.1"
FOLDERS = (
    "/usr/lib/x86_64-linux-gnu",
    "/usr/lib/aarch64-linux-gnu",
    "/usr/lib64",
    "/usr/lib",
)
LINKS = 8  # alternatives of Debian lead over four
NVIDIA, BRIDGE_OTHER = "0x10de", "0x0680"  # NVSwitches are bridges of the class "other"
NO_FIELD = "is not a valid field to query"
FABRIC = "--query-gpu=gpu_bus_id,fabric.state,fabric.status"


def gather(host: Reader, devices: Devices, want: GpuStackWant) -> GpuStackSeen:
    """One look."""
    switches = _nvswitches(host, devices)
    needed = isinstance(switches, int) and switches > 0
    return GpuStackSeen(
        driver=DriverSeen(host.read(f"{MODULE}/version"), _on_disk(host), _libraries(host), _open_modules(host)),
        nvswitches=switches,
        fabric_manager=_fabric_manager(host) if needed else ABSENT,
        fabric=_fabric(host) if needed else ABSENT,
        services=services.read(host),
        gpudirect=peermem(host) if want.gpudirect is not None else ABSENT,
        old_peermem=tuple(_old_peermem(host)),
    )


def _on_disk(host: Reader) -> Text:
    output = host.query("modinfo", "-F", "version", "nvidia")
    if isinstance(output, Unknown):
        return output
    if output.rc != 0:
        return ABSENT if "not found" in output.stderr else Unknown(f"modinfo: {output.error}")
    return output.stdout.strip() or Unknown("modinfo: no version")


def _libraries(host: Reader) -> Text:
    """The version in the name of the file that the library's link leads to."""
    for folder in FOLDERS:
        path = f"{folder}/{LIBRARY}"
        for _ in range(LINKS):
            target = host.link(path)
            if not isinstance(target, str):
                break
            path = target if target.startswith("/") else f"{path.rpartition('/')[0]}/{target}"
            match = re.search(r"\.so\.([0-9]+(?:\.[0-9]+)+)$", path)
            if match:
                return match[1]
        if host.exists(f"{folder}/{LIBRARY}"):
            return Unknown(f"{folder}/{LIBRARY} does not lead to a file named by its version")
    return ABSENT


def _open_modules(host: Reader) -> Flag:
    text = host.read(PROC)
    return "Open Kernel Module" in text if isinstance(text, str) else Unknown(f"{PROC}: {text}")


def _nvswitches(host: Reader, devices: Devices) -> Union[int, Unknown]:
    """Functions that are NVSwitches, or that manage those of a baseboard which shows none."""
    names = host.names(PCI_DEVICES)
    if isinstance(names, Unknown):
        return names
    own = [pci for pci in (names if isinstance(names, tuple) else ()) if _is_nvswitch(host, f"{PCI_DEVICES}/{pci}")]
    return len(own) or sum(nic.nvswitch for nic in devices.nics)


def _is_nvswitch(host: Reader, folder: str) -> bool:
    kind = host.read(f"{folder}/class")
    return isinstance(kind, str) and kind.startswith(BRIDGE_OTHER) and host.read(f"{folder}/vendor") == NVIDIA


def _fabric_manager(host: Reader) -> Text:
    if not host.installed("nv-fabricmanager"):
        return ABSENT
    output = host.query("nv-fabricmanager", "--version")
    if isinstance(output, Unknown):
        return output
    match = re.search(r"\b[0-9]{3,4}(?:\.[0-9]+){1,3}\b", output.stdout)
    return match[0] if output.rc == 0 and match else Unknown(f"nv-fabricmanager --version: {output.error}")


def _fabric(host: Reader) -> Union[Dict[str, str], Absent, Unknown]:
    """State and status of each GPU, as one text."""
    output = host.query("nvidia-smi", FABRIC, "--format=csv,noheader,nounits")
    if isinstance(output, Unknown):
        return output
    if output.rc != 0:
        return ABSENT if NO_FIELD in output.stdout else Unknown(f"nvidia-smi: {output.error}")
    rows = [[cell.strip() for cell in line.split(",")] for line in output.stdout.splitlines() if line.strip()]
    if not rows or any(len(row) != len(("pci", "state", "status")) for row in rows):
        return Unknown("nvidia-smi: printed what no known release prints")
    return {_pci(row[0]): f"{row[1]}, {row[2]}" for row in rows}


def _pci(bus_id: str) -> str:
    """00000000:1B:00.0 as sysfs writes it."""
    return re.sub(r"^0000(?=[0-9a-f]{4}:)", "", bus_id.lower())


def _old_peermem(host: Reader) -> Iterator[str]:
    if host.exists("/sys/module/nv_peer_mem"):
        yield "the kernel"
    for path in ("/etc/modules", *_configured(host)):
        text = host.read(path)
        lines = text.splitlines() if isinstance(text, str) else ()
        if any(line.strip() in ("nv_peer_mem", "nv-peer-mem") for line in lines):
            yield path


def _configured(host: Reader) -> Tuple[str, ...]:
    names = host.names("/etc/modules-load.d")
    return tuple(f"/etc/modules-load.d/{name}" for name in (names if isinstance(names, tuple) else ()))
