"""What comes after the early restore: the network and the services that start jobs; and how long they wait for ports.

This is a drop-in of gpufab's own unit: it works for services that are installed later too, and no other program's file
is changed. Where the site's own order has such a service before something that the early restore comes after, the two
would make a cycle, which systemd breaks by leaving out a unit of its choice. That service is left out instead.

``systemd-analyze verify UNIT`` does not show this: it looks only at what UNIT pulls in.
"""

import re
from typing import Dict, Iterable, List, Mapping, Tuple, Union

from .. import units
from ..change import Absent, Unknown
from ..host import Host, Reader, sha256
from .files import EARLY, EARLY_AFTER, EARLY_SECONDS, HEADER, UNITS, WAIT

ORDER = f"{UNITS}/{EARLY}.d/50-order.conf"
NETWORK = "network-pre.target"
JOBS = (
    *("slurmd", "kubelet", "containerd", "docker", "crio", "podman", "podman-restart"),
    *("k3s", "k3s-agent", "rke2-server", "rke2-agent", "k0scontroller", "k0sworker"),
    *("snap.microk8s.daemon-containerd", "snap.microk8s.daemon-kubelite", "snap.k8s.containerd", "snap.k8s.kubelet"),
    *("nomad", "pbs", "lsfd", "condor", "flux", "libvirtd", "virtqemud", "libvirt-guests"),
)
"""Services that start jobs or guests, of which a host has some."""


def text(value: str) -> bytes:
    """The drop-in that such a line stands for."""
    wait, units_after = _parsed(value)
    wants = [f"Wants={NETWORK}\n"] if NETWORK in units_after else []
    lines = ["[Unit]\n", *wants, *(f"Before={unit}\n" for unit in units_after)]
    service = f"\n[Service]\nEnvironment={WAIT}={wait}\nTimeoutStartSec={wait + EARLY_SECONDS}\n"
    return (HEADER + "".join(lines) + service).encode()


def read(host: Reader) -> Union[str, Absent, Unknown]:
    """The line that the drop-in on the node stands for; of a file that gpufab did not write so, its digest."""
    content = host.read_bytes(ORDER)
    if not isinstance(content, bytes):
        return content
    words = content.decode("utf-8", "replace")
    wait = re.search(f"={WAIT}=([0-9]{{1,4}})$", words, re.MULTILINE)
    line = _line(int(wait[1]) if wait else 0, re.findall("^Before=(.+)$", words, re.MULTILINE))
    return line if text(line) == content else sha256(content)


def write(host: Host, line: str) -> None:
    """Write the drop-in that a line stands for; the old content of a foreign file is not known, and it stays."""
    if line.startswith("wait "):
        host.put(ORDER, text(line))


def wanted(wait_s: int, services: Iterable[str], loops: Mapping[str, str]) -> str:
    """The line that is wanted on the node."""
    return _line(wait_s, [unit for unit in candidates(services) if unit not in loops])


def _line(wait_s: int, before: Iterable[str]) -> str:
    return " ".join(["wait", str(wait_s), "before", *before])


def _parsed(line: str) -> Tuple[int, List[str]]:
    _, wait, _, *before = line.split()
    return int(wait), before


def candidates(services: Iterable[str]) -> Tuple[str, ...]:
    """The units that would come after the early restore if no order spoke against it."""
    return (NETWORK, *(f"{service}.service" for service in services))


def loops(host: Reader, services: Iterable[str]) -> Union[Dict[str, str], Unknown]:
    """The candidates that come before the early restore already, each with the way there in words."""
    found = units.after(host)
    if isinstance(found, Unknown):
        return found
    later = _reach({**found, EARLY: (*found.get(EARLY, ()), *EARLY_AFTER)})
    return {unit: _way(unit, later) for unit in candidates(services) if unit in later}


def _reach(after: Dict[str, Tuple[str, ...]]) -> Dict[str, str]:
    """Every unit that comes before the early restore, and the unit that it comes before on the way there."""
    later: Dict[str, str] = {}
    queue = [EARLY]
    while queue:
        unit = queue.pop(0)
        for earlier in after.get(unit, ()):
            if earlier not in later and earlier != EARLY:
                later[earlier] = unit
                queue.append(earlier)
    return later


def _way(unit: str, later: Dict[str, str]) -> str:
    way = [unit]
    while way[-1] != EARLY:
        way.append(later[way[-1]])
    return " before ".join(way)
