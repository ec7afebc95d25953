"""Which processes are the system's daemons: known by who runs them and by their program, never by the name alone.

Any user may call a process what he likes. The kernel's record of its user ids he cannot write, and its program is the
file that /proc/PID/exe leads to. That link's text is a path in the process's own mount namespace, so a daemon in a
container shows the container's path; the file behind it, its owner and the folders above it are looked at through the
process (/proc/PID/exe and /proc/PID/root), wherever they are. Inside a user namespace a container's root is some other
user here, and no daemon. A tenant who is root outside of one could make himself a "daemon" in his container: what that
hides is his own job alone.
"""

import re
import stat
from typing import Dict, FrozenSet, Iterable, Tuple, Union

from .change import Absent, Unknown
from .host import Reader
from .processes import Process, processes
from .stats import FileStat

IDLE: Dict[str, Tuple[str, ...]] = {
    "opensm": (),
    "ibacm": (),
    "rdma-ndd": (),
    "iwpmd": (),
    "srp_daemon": (),
    "nv-hostengine": ("nvidia-dcgm",),
    "nvidia-persistenced": ("nvidia-persistenced",),
    "nv-fabricmanager": (),
    "nvlsm": (),
}
"""Daemons that keep a device open without running a job, with the service users that may run them besides root."""
SERVICE_USERS = frozenset(user for users in IDLE.values() for user in users)
FOLDERS = ("/usr/", "/bin/", "/sbin/", "/opt/")
"""Where the system's programs are (Filesystem Hierarchy Standard)."""
DELETED = " (deleted)"  # what the kernel puts behind the name of a program that was removed or replaced
COMM = 15  # so many characters of a program's name the kernel keeps
_OTHERS_WRITE = stat.S_IWGRP | stat.S_IWOTH


def named(host: Reader, names: Iterable[str]) -> Tuple[Process, ...]:
    """The processes that root or a service user runs under one of these names: of the program, or of the process where
    the program is an interpreter. One whose program was replaced by an update still runs, and counts.
    """
    wanted = frozenset(names)
    short = frozenset(name[:COMM] for name in wanted)
    trusted = _uids(host, SERVICE_USERS)
    return tuple(
        process
        for process in processes(host)
        if (process.name in short or _program(host, process) in wanted) and _may_be_run_by(host, process, trusted)
    )


def _program(host: Reader, process: Process) -> str:
    exe = host.link(f"/proc/{process.pid}/exe")
    if not isinstance(exe, str):
        return ""
    return (exe[: -len(DELETED)] if exe.endswith(DELETED) else exe).rpartition("/")[2]


def _may_be_run_by(host: Reader, process: Process, trusted: FrozenSet[int]) -> bool:
    """Whether it cannot be ruled out: a daemon that others must give way to is not to be missed."""
    found = owners(host, process)
    return isinstance(found, Unknown) or (isinstance(found, frozenset) and found <= trusted)


def is_idle(host: Reader, process: Process) -> bool:
    """Whether a process that holds a device is one of the daemons that only keep it open. In doubt it is not."""
    exe = host.link(f"/proc/{process.pid}/exe")
    if not isinstance(exe, str) or not exe.startswith(FOLDERS):
        return False
    users = IDLE.get(exe.rpartition("/")[2])
    found = owners(host, process)
    if users is None or not isinstance(found, frozenset) or not found <= _uids(host, users):
        return False
    return _is_installed(host, process, exe)


def _is_installed(host: Reader, process: Process, exe: str) -> bool:
    """Whether the program that runs is the one that lies at its path now, where nobody but root can put another."""
    running, root = host.stat(f"/proc/{process.pid}/exe"), f"/proc/{process.pid}/root"
    lying = host.stat(f"{root}{exe}")
    if not isinstance(running, FileStat) or not isinstance(lying, FileStat) or running.identity != lying.identity:
        return False
    parts = exe.split("/")
    above = (host.stat(root + "/".join(parts[:count])) for count in range(1, len(parts)))
    return all(isinstance(file, FileStat) and _is_roots(file) for file in (lying, *above))


def _is_roots(file: FileStat) -> bool:
    return file.uid == 0 and not file.mode & _OTHERS_WRITE


def owners(host: Reader, process: Process) -> Union[FrozenSet[int], Absent, Unknown]:
    """The user ids of a process, real, effective, saved and of its file accesses; ABSENT once it has ended."""
    text = host.read(f"/proc/{process.pid}/status")
    if not isinstance(text, str):
        return text
    match = re.search(r"^Uid:((?:\t[0-9]{1,10}){4})$", text, re.MULTILINE)
    return frozenset(map(int, match[1].split())) if match else Unknown(f"/proc/{process.pid}/status: no user ids")


def _uids(host: Reader, users: Iterable[str]) -> FrozenSet[int]:
    """Root's id, and those that the node's own /etc/passwd gives some users."""
    text = host.read("/etc/passwd")
    rows = [line.split(":") for line in text.splitlines()] if isinstance(text, str) else []
    wanted = frozenset(users)
    return frozenset({0, *(int(row[2]) for row in rows if row[0] in wanted and row[2:] and row[2].isdigit())})
