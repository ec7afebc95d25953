"""modinfo, as far as the GPU driver goes, and nv-fabricmanager."""

from gpufab_cli.lab.hardware import gpu_software
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.tools.answer import Answer, Request

_DRIVER = ("nvidia", "nvidia_peermem")
DAEMON = "/usr/lib/gpufab-lab/daemon"


def modinfo(hw: Hardware, request: Request) -> Answer:
    """The version of a module on disk; of no other module and no other field."""
    name = request.argv[-1] if request.argv else ""
    if name not in _DRIVER:
        return Answer(stderr=f"modinfo: ERROR: Module {name} not found.\n", rc=1)
    return Answer(f"{gpu_software.installed(hw)}\n" if request.argv[:2] == ("-F", "version") else "")


def nv_fabricmanager(hw: Hardware, request: Request) -> Answer:
    """Its version; or the daemon, which ends at once unless the loaded driver is of the same."""
    version, driver = gpu_software.fabric_manager(hw), gpu_software.running(hw)
    if "--version" in request.argv or "-v" in request.argv:
        return Answer(f"Fabric Manager version is : {version}\n")
    if version != driver:
        said = f"fabric manager NVIDIA GPU driver interface version {version} don't match with driver version {driver}."
        return Answer(stderr=f"{said} Please update with matching NVIDIA driver package.\n", rc=1)
    return Answer(program=DAEMON)
