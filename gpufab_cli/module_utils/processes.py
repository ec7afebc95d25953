"""Who runs on the node: programs by name, and who holds a device or a socket open. From /proc alone."""

import re
from dataclasses import dataclass
from typing import Dict, Iterable, List, Mapping, Tuple, Union

from .change import Unknown
from .host import Reader
from .stats import FileStat


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


@dataclass(frozen=True)
class DeviceFile:
    """A device as processes open it: its number as sysfs prints it ("" where that does not say), and its usual path."""

    number: str
    path: str


TABLES = 8
"""So many tables of open files of one process are told apart; any more threads are each looked at on their own."""
_NO_DEVICE = ("socket:[", "pipe:[", "anon_inode:")


def open_files(host: Reader, process: Process) -> Union[Dict[str, str], Unknown]:
    """What a process holds open by entry below /proc, as it is named there; Unknown without the right to look.

    All threads count: the first may have ended, which leaves its own list empty, and any may have a table of its own
    (unshare(2), CLONE_FILES).
    """
    threads = host.names(f"/proc/{process.pid}/task")
    if isinstance(threads, Unknown):
        return threads
    tables: List[str] = []
    for thread in threads if isinstance(threads, tuple) else (process.pid,):
        if not any(host.same_files(table, thread) for table in tables[:TABLES]):
            tables.append(thread)
    found: Dict[str, str] = {}
    for thread in tables:
        task = "" if thread == process.pid else f"/task/{thread}"
        more = _table(host, f"/proc/{process.pid}{task}/fd")
        if isinstance(more, Unknown):
            return more
        found.update(more)
    return found


def _table(host: Reader, folder: str) -> Union[Dict[str, str], Unknown]:
    names = host.names(folder)
    if isinstance(names, Unknown):
        return names
    # A process that has ended meanwhile is ABSENT, and so is a file closed since; one that hides its files, as sshd
    # does from all but CAP_SYS_PTRACE, is not.
    links = {f"{folder}/{name}": host.link(f"{folder}/{name}") for name in (names if isinstance(names, tuple) else ())}
    unknown = next((link for link in links.values() if isinstance(link, Unknown)), None)
    return unknown or {entry: link for entry, link in links.items() if isinstance(link, str)}


def holders(host: Reader, devices: Iterable[DeviceFile]) -> Union[Dict[DeviceFile, Tuple[Process, ...]], Unknown]:
    """Who holds each of some devices open, in one pass; Unknown unless all processes could be looked at.

    A device is known by its number: a container or mknod(1) gives it any name. By its usual path it is known besides,
    for where its number cannot be learnt.
    """
    by_path = {device.path: device for device in devices}
    by_number = {device.number: device for device in by_path.values() if device.number}
    found: Dict[DeviceFile, Tuple[Process, ...]] = {}
    for process in processes(host) if by_path else ():
        files = open_files(host, process)
        held = files if isinstance(files, Unknown) else _devices(host, files, by_path, by_number)
        if isinstance(held, Unknown):
            return held
        for device in held:
            found[device] = (*found.get(device, ()), process)
    return found


def _devices(
    host: Reader, files: Mapping[str, str], by_path: Mapping[str, DeviceFile], by_number: Mapping[str, DeviceFile]
) -> Union[Tuple[DeviceFile, ...], Unknown]:
    held: Dict[DeviceFile, None] = {}
    for entry, name in files.items():
        if name in by_path:
            held[by_path[name]] = None
        elif not name.startswith(_NO_DEVICE):
            file = host.stat(entry)
            if isinstance(file, Unknown):
                return file
            if isinstance(file, FileStat) and file.number in by_number:
                held[by_number[file.number]] = None
    return tuple(held)


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
