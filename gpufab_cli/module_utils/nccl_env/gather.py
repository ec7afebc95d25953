"""Look at what tells NCCL its variables on a node, and at what they are about."""

import re
from typing import Dict, Iterator, Optional, Tuple, Union

from .. import jobs_environment, rails, settings_file
from ..change import Unknown
from ..devices import Devices
from ..host import Reader
from ..jobs_environment import Job
from . import files
from .seen import NcclEnvSeen, OtherFile
from .variables import TOPO_FILES, parse_version
from .want import NcclEnvWant

LIBRARY_FOLDERS = ("/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/usr/lib64", "/usr/local/lib")
HOMES = "/home"
DOT_FILE = ".nccl.conf"


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
        interfaces=interfaces if isinstance(interfaces, tuple) else (),
        jobs=jobs,
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
    names = host.names(HOMES)
    users = [f"{HOMES}/{name}" for name in names] if isinstance(names, tuple) else []
    found: Dict[str, Union[OtherFile, Unknown]] = {}
    for home in ("/root", *users):
        text = host.read_of_user(f"{home}/{DOT_FILE}")
        if isinstance(text, (str, Unknown)):
            found[f"{home}/{DOT_FILE}"] = files.other_file(text) if isinstance(text, str) else text
    return found, names.reason if isinstance(names, Unknown) else None


def _missing(host: Reader, told: Dict[str, OtherFile], jobs: Tuple[Job, ...]) -> Iterator[Tuple[str, str]]:
    """Topology files that are not there. NCCL ignores that without a word; a container has a file system of its own."""
    for where, item in told.items():
        for name in TOPO_FILES:
            path = item.values.get(name, "")
            if path.startswith("/") and not host.exists(path):  # another one is below wherever a job is started
                yield where, path
    for job in jobs:
        for name in TOPO_FILES:
            path = job.variables.get(name, "")
            place = f"root{path}" if path.startswith("/") else f"cwd/{path}"
            if path and not host.exists(f"/proc/{job.pids[0]}/{place}"):
                yield str(job), path
