"""What a file is, apart from its content: the part of the doors that asks stat(2) and its like (:mod:`.host`)."""

import errno
import functools
import os
import stat
import struct
from dataclasses import dataclass
from typing import Any, Optional, Tuple, Union

from .change import ABSENT, Absent, Unknown

_AT_FDCWD, _DONT_SYNC, _BASIC = -100, 0x4000, 0x7FF  # fcntl.h and linux/stat.h: AT_STATX_DONT_SYNC, STATX_BASIC_STATS
_SIZE, _OWNER, _INODE, _DEVICES = 256, "20xI4xH", "32xQ", "128x4I"  # struct statx of linux/stat.h
_KCMP, _FILES = {"x86_64": 312, "aarch64": 272}, 2  # kcmp(2), KCMP_FILES


@dataclass(frozen=True)
class FileStat:
    """A file: its owner, its type and permission bits, what tells it from all others, and of a character device its
    number as sysfs prints it, MAJOR:MINOR; "" of any other file.
    """

    uid: int
    mode: int
    identity: Tuple[int, int, int]
    number: str = ""


class StatReader:
    """Asks about files below a root."""

    def __init__(self, root: str) -> None:
        self._root = root.rstrip("/")

    def _path(self, path: str) -> str:
        """Where it is. What a user's file calls a path may be none: no file's name can hold a NUL."""
        if "\0" in path:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
        return self._root + path

    def stat(self, path: str) -> Union[FileStat, Absent, Unknown]:
        """What a path leads to. No server is asked: a file of a server that is gone must not hold up the look."""
        try:
            return _statx(self._path(path))
        except OSError as error:
            return unreadable(path, error)

    def same_files(self, one: str, other: str) -> bool:
        """Whether two threads have one table of open files; False also where the kernel does not say (kcmp(2))."""
        number = _KCMP.get(os.uname().machine)
        return number is not None and _libc().syscall(number, int(one), int(other), _FILES, 0, 0) == 0

    def inode(self, path: str) -> Union[int, Absent, Unknown]:
        """The inode number of a file or link itself. In sysfs it is never used again while the system runs."""
        try:
            return os.lstat(self._path(path)).st_ino
        except OSError as error:
            return unreadable(path, error)

    def exists(self, path: str) -> bool:
        """Whether there is something at the path."""
        return "\0" not in path and os.path.lexists(self._path(path))

    def size(self, path: str) -> Union[int, Absent, Unknown]:
        """The size of a file in bytes."""
        try:
            return os.stat(self._path(path)).st_size
        except OSError as error:
            return unreadable(path, error)

    def free_bytes(self, path: str) -> Union[int, Unknown]:
        """How much an unprivileged program could still write to the file system of a path."""
        try:
            found = os.statvfs(self._path(path))
        except OSError as error:
            return Unknown(f"{path}: {error.strerror or error}")
        return found.f_bavail * found.f_frsize

    def mode(self, path: str) -> Union[int, Absent, Unknown]:
        """The permission bits of a file."""
        try:
            return stat.S_IMODE(os.stat(self._path(path)).st_mode)
        except OSError as error:
            return unreadable(path, error)


def unreadable(path: str, error: OSError) -> Union[Absent, Unknown]:
    """What is said of a file that could not be read. A process that has ended while it is looked at is not there."""
    gone = (errno.ENOENT, errno.ENOTDIR, *((errno.ESRCH,) if path.startswith("/proc/") else ()))
    return ABSENT if error.errno in gone else Unknown(f"{path}: {error.strerror or error}")


@functools.lru_cache(maxsize=1)
def _libc() -> Any:
    import ctypes  # only few questions need it, and it takes its time

    return ctypes.CDLL(None, use_errno=True)


def _statx(path: str) -> FileStat:
    """By statx(2) without a question to a server, where the C library has it (glibc since 2.28)."""
    call: Optional[Any] = getattr(_libc(), "statx", None)
    if call is None:
        found = os.stat(path)
        number = (os.major(found.st_rdev), os.minor(found.st_rdev))
        place = (os.major(found.st_dev), os.minor(found.st_dev), found.st_ino)
        return _file_stat(found.st_uid, found.st_mode, place, number)
    import ctypes

    buffer = ctypes.create_string_buffer(_SIZE)
    if call(_AT_FDCWD, os.fsencode(path), _DONT_SYNC, _BASIC, buffer):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), path)
    uid, mode = struct.unpack_from(f"={_OWNER}", buffer)
    (inode,) = struct.unpack_from(f"={_INODE}", buffer)
    major, minor, own_major, own_minor = struct.unpack_from(f"={_DEVICES}", buffer)
    return _file_stat(uid, mode, (own_major, own_minor, inode), (major, minor))


def _file_stat(uid: int, mode: int, identity: Tuple[int, int, int], number: Tuple[int, int]) -> FileStat:
    return FileStat(uid, mode, identity, f"{number[0]}:{number[1]}" if stat.S_ISCHR(mode) else "")
