"""Look at what tells NCCL its variables on a node, and at what they are about."""

import re
from typing import Dict, Iterator, Optional, Tuple, Union

from .. import jobs_environment, rails, settings_file
from ..change import Unknown
from ..devices import PCI_DEVICES, Devices
from ..host import Reader
from ..jobs_environment import Job
from . import files
from .homes import homes
from .seen import NcclEnvSeen, OtherFile
from .variables import TOPO, TOPO_FILES, parse_version
from .want import NcclEnvWant

LIBRARY_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/local/lib")
DOT_FILE = ".nccl.conf"
HOMES = 1 << 20
"""Characters of users' files that are kept, all homes together."""
STRANGERS = 16
"""Addresses that are kept of a topology file; a finding lists fewer."""
_BUSID = re.compile(r"""\bbusid=["']([0-9A-Fa-f]{4}:[0-9A-Fa-f]{2}:[01][0-9A-Fa-f]\.[0-7])["']""")
_END = re.compile(r"""\bclass=["']0x0[23]""")  # network and display controllers


def gather(host: Reader, devices: Devices, want: NcclEnvWant) -> NcclEnvSeen:
    """Everything that the plan decides by."""
    found = {path: settings_file.read(host, path) for path in files.paths(want)}
    homes, unread = _homes(host)
    jobs = jobs_environment.gather(host)
    interfaces = host.names("/sys/class/net")
    conf = found[files.NCCL_CONF]
    told = {files.NCCL_CONF: files.other_file(conf)} if isinstance(conf, str) else {}
    told.update({path: item for path, item in homes.items() if isinstance(item, OtherFile)})
    return NcclEnvSeen(
        files=found,
        homes=homes,
        unread_homes=unread,
        libraries=libraries(host),
        ports=rails.gather(host, devices, want.rails),
        device_ports=rails.device_ports(host, devices),
        interfaces=interfaces if isinstance(interfaces, tuple) else (),
        jobs=jobs,
        strangers=tuple(_strangers(host, told, jobs if isinstance(jobs, tuple) else ())),
        missing=tuple(_missing(host, told, jobs if isinstance(jobs, tuple) else ())),
    )


def libraries(host: Reader) -> Tuple[str, ...]:
    """The releases of the NCCL libraries in the system's folders, oldest first."""
    found = set()
    for folder in LIBRARY_FOLDERS:
        names = host.names(folder)
        for name in names if isinstance(names, tuple) else ():
            match = re.fullmatch(r"libnccl\.so\.(\d+\.\d+\.\d+)", name)
            found.update([match[1]] if match else [])
    return tuple(sorted(found, key=lambda text: parse_version(text) or ()))


def _homes(host: Reader) -> Tuple[Dict[str, Union[OtherFile, Unknown]], Optional[str]]:
    users, unread = homes(host)
    found: Dict[str, Union[OtherFile, Unknown]] = {}
    left = HOMES
    for home in ("/root", *users):
        text = host.read_of_user(f"{home}/{DOT_FILE}")
        if isinstance(text, str):
            left -= min(len(text), files.KEPT)
            beyond = Unknown(f"not looked at: those before it have {HOMES} characters")
            found[f"{home}/{DOT_FILE}"] = files.other_file(text) if left >= 0 else beyond
        elif isinstance(text, Unknown):
            found[f"{home}/{DOT_FILE}"] = text
    return found, unread


def _named(
    told: Dict[str, OtherFile], jobs: Tuple[Job, ...], names: Tuple[str, ...]
) -> Iterator[Tuple[str, str, str, str]]:
    """Who names a file, by which variable, and where it is for him. A container has a file system of its own."""
    for where, item in told.items():
        for name in names:
            path = item.values.get(name, "")
            if path.startswith("/"):  # another one is below wherever a job is started
                yield where, name, path, path
    for job in jobs:
        for name in names:
            path = job.variables.get(name, "")
            folder = f"/proc/{job.pids[0]}/{'root' if path.startswith('/') else 'cwd'}"
            if path:
                yield str(job), name, path, f"{folder}/{path.lstrip('/')}"


def _missing(host: Reader, told: Dict[str, OtherFile], jobs: Tuple[Job, ...]) -> Iterator[Tuple[str, str]]:
    """Topology files that are not there. NCCL ignores that without a word."""
    yield from ((who, path) for who, _, path, place in _named(told, jobs, TOPO_FILES) if not host.exists(place))


def _strangers(
    host: Reader, told: Dict[str, OtherFile], jobs: Tuple[Job, ...]
) -> Iterator[Tuple[str, Tuple[str, ...]]]:
    """Addresses in topology files that this node has nothing at; what bridges a guest is shown is its own affair."""
    here = host.names(PCI_DEVICES)
    if not isinstance(here, tuple):
        return
    for who, _, _, place in _named(told, jobs, (TOPO,)):
        text = host.read_of_user(place)
        tags = re.findall(r"<pci\b[^>]{0,2000}>", text) if isinstance(text, str) else []
        found = [match[1].lower() for tag in tags if _END.search(tag) and (match := _BUSID.search(tag))]
        strange = tuple(dict.fromkeys(pci for pci in found if pci not in here))
        if strange:
            yield who, strange[:STRANGERS]
