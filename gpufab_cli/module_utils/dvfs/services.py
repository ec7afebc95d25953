"""Who else sets clocks and power on a node: services of systemd, and daemons that run."""

from typing import Dict, Tuple, Union

from ..change import Unknown
from ..daemons import COMM, named
from ..host import Reader
from ..units import show
from .seen import Service

SYSTEMD = "/run/systemd/system"
"""Where systemd is the init system (sd_booted(3))."""
PERSISTENCED = "nvidia-persistenced.service"
FABRIC_MANAGER = "nvidia-fabricmanager.service"
TUNED = "tuned.service"
PROFILES_DAEMON = "power-profiles-daemon.service"
CPUPOWER = "cpupower.service"
UNITS = (PERSISTENCED, FABRIC_MANAGER, TUNED, PROFILES_DAEMON, CPUPOWER)

CPU_OWNERS = (TUNED, PROFILES_DAEMON)
"""Services that set the governor and EPP whenever they see fit; cpupower only does so when it starts."""

_DAEMONS = {
    "nv-hostengine": "DCGM",
    "slurmd": "Slurm, whose prolog and epilog may set them",
    "nvidia-pstated": "nvidia-pstated",
    "geopmd": "GEOPM",
    "eard": "EAR",
    "tuned": "tuned",
    "power-profiles-daemon": "power-profiles-daemon",
}


def read(host: Reader) -> Union[Dict[str, Service], Unknown]:
    """The services by unit name; none where no systemd runs, Unknown where it does and does not answer."""
    blocks = show(host, ("Id", "LoadState", "ActiveState", "UnitFileState"), UNITS, "Job")
    if isinstance(blocks, Unknown):
        return blocks if host.exists(SYSTEMD) else {}
    return {
        block["Id"]: Service(
            loaded=block["LoadState"] == "loaded",
            active=block["ActiveState"],
            starting=block["ActiveState"] == "activating" or block.get("Job", "0") not in ("", "0"),
            enabled=block["UnitFileState"],
        )
        for block in blocks
    }


def writers(host: Reader) -> Tuple[str, ...]:
    """Daemons that run and are known to set clocks or power, in words."""
    words = {name[:COMM]: what for name, what in _DAEMONS.items()}
    return tuple(f"{words.get(p.name, p.name)} (process {p.pid})" for p in named(host, _DAEMONS))
