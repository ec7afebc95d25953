"""Who runs on the node: programs by name, and who holds a device or a socket open. From /proc alone."""

import re
from dataclasses import dataclass
from typing import Dict, FrozenSet, List, Tuple, Union

from .change import Unknown
from .host import Reader


@dataclass(frozen=True)
class Process:
    """A process by id and by the kernel's name for it (``comm``: 15 characters)."""

    pid: str
    name: str


def processes(host: Reader) -> Tuple[Process, ...]:
    """Every process that could be seen."""
    names = host.names("/proc")
    found = []
    for pid in names if isinstance(names, tuple) else ():
        comm = host.read(f"/proc/{pid}/comm") if pid.isdigit() else None
        if isinstance(comm, str):
            found.append(Process(pid, comm))
    return tuple(found)


def open_files(host: Reader, process: Process) -> Union[FrozenSet[str], Unknown]:
    """What a process holds open, as /proc/PID/fd shows it; Unknown without the right to look."""
    folder = f"/proc/{process.pid}/fd"
    names = host.names(folder)
    if isinstance(names, Unknown):
        return names
    if not isinstance(names, tuple):
        return frozenset()  # the process has ended meanwhile
    links = [host.link(f"{folder}/{name}") for name in names]
    unknown = next((link for link in links if isinstance(link, Unknown)), None)
    # A file closed since is ABSENT; a process that hides its files, as sshd does from all but CAP_SYS_PTRACE, is not.
    return unknown if unknown is not None else frozenset(link for link in links if isinstance(link, str))


def holders(host: Reader, pattern: str) -> Union[Tuple[Process, ...], Unknown]:
    """The processes that hold open a file whose path matches ``pattern``; Unknown unless all could be looked at."""
    found = []
    for process in processes(host):
        files = open_files(host, process)
        if isinstance(files, Unknown):
            return files
        if any(re.fullmatch(pattern, file) for file in files):
            found.append(process)
    return tuple(found)


def held_files(host: Reader, pattern: str) -> Union[Dict[str, Tuple[Process, ...]], Unknown]:
    """Who holds each open file whose path matches ``pattern``; Unknown unless all processes could be looked at."""
    found: Dict[str, Tuple[Process, ...]] = {}
    for process in processes(host):
        files = open_files(host, process)
        if isinstance(files, Unknown):
            return files
        for file in sorted(files):
            if re.fullmatch(pattern, file):
                found[file] = (*found.get(file, ()), process)
    return found


@dataclass(frozen=True)
class Connection:
    """An established TCP connection: addresses as text, ports as numbers, and the socket's inode."""

    local: str
    local_port: int
    remote: str
    remote_port: int
    inode: str


def connections(host: Reader) -> Union[Tuple[Connection, ...], Unknown]:
    """The established TCP connections of the node (Documentation/networking/proc_net_tcp.rst, state 01).

    A kernel without IPv6 has no table of it; any other that is missing or strange leaves all unknown.
    """
    found: List[Connection] = []
    for table in ("/proc/net/tcp", "/proc/net/tcp6"):
        text = host.read(table)
        if isinstance(text, Unknown):
            return text
        if not isinstance(text, str):
            continue
        if not text.lstrip().startswith("sl "):
            return Unknown(f"{table}: no table as a known kernel prints it")
        rows = [line.split() for line in text.splitlines()[1:]]
        if not all(len(row) > _INODE and all(_ENDPOINT.fullmatch(word) for word in row[1:3]) for row in rows):
            return Unknown(f"{table}: a line as no known kernel prints it")
        found += [_connection(row) for row in rows if row[3] == _ESTABLISHED]
    return tuple(found)


_ESTABLISHED, _INODE = "01", 9
_IPV4, _IPV6 = 4, 16
_ENDPOINT = re.compile(r"(?:[0-9A-F]{8}|[0-9A-F]{32}):[0-9A-F]{4}")


def _connection(words: List[str]) -> Connection:
    (local, local_port), (remote, remote_port) = (_endpoint(word) for word in words[1:3])
    return Connection(local, local_port, remote, remote_port, words[_INODE])


def _endpoint(word: str) -> Tuple[str, int]:
    """An address as the kernel prints it: 32-bit words in host byte order, little-endian on every GPU host."""
    address, _, port = word.partition(":")
    raw = b"".join(bytes.fromhex(address[i : i + 8])[::-1] for i in range(0, len(address), 8))
    if len(raw) == _IPV6 and raw[:12] == b"\0" * 10 + b"\xff\xff":
        raw = raw[12:]
    text = ".".join(map(str, raw)) if len(raw) == _IPV4 else ":".join(raw[i : i + 2].hex() for i in range(0, 16, 2))
    return text, int(port, 16)
