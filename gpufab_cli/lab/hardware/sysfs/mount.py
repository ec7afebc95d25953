"""The tree as a FUSE mount.

Nothing is cached for longer than a moment: contents are read and written straight through (direct_io). Permissions are
the kernel's to check (default_permissions), but for one that sysfs adds: a file without a write method cannot be opened
for writing, not even by root.
"""

import errno
import os
import re
import signal
import stat
import threading
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import mfusepy

from gpufab_cli.lab.hardware import NAME_CACHE_S
from gpufab_cli.lab.hardware.model import Hardware, fail
from gpufab_cli.lab.hardware.sysfs import control, cpu, infiniband, net, numa, pci, sriov, system
from gpufab_cli.lab.hardware.sysfs.tree import Binary, Directory, Entry, File, Link, Tree

_PAGE = 4096
_SIGKILL_BIT = 1 << (signal.SIGKILL - 1)
_LIVE = ("/class/net", "/devices/virtual/net")


def build(hw: Hardware) -> Tree:
    """All of /sys as the machine is now."""
    tree = Tree()
    for part in (system, cpu, pci, sriov, net, infiniband, control, numa):
        part.add(tree, hw)
    return tree


class Sysfs(mfusepy.Operations):  # type: ignore[misc]
    """FUSE operations on the tree; rebuilt when files may have come or gone."""

    use_ns = True

    def __init__(self, hw: Hardware) -> None:
        self._hw = hw
        self._lock = threading.Lock()
        self._built: tuple[int, tuple[str, ...]] = (-1, ())
        self._tree = Tree()

    def _state(self) -> tuple[int, tuple[str, ...]]:
        try:
            names = tuple(self._hw.node.names()) if self._hw.node else ()
        except OSError:
            names = ()
        return self._hw.structure, names

    def _fresh(self, live: bool) -> Tree:
        """The tree; `live` also looks whether interfaces came or went."""
        if self._built[0] != self._hw.structure or (live and self._built != self._state()):
            with self._lock:
                self._built = self._state()
                self._tree = build(self._hw)
        return self._tree

    def _entry(self, path: str) -> Entry:
        return self._fresh(live=path.startswith(_LIVE)).get(path)

    def _file(self, path: str) -> File | Binary:
        entry = self._entry(path)
        if not isinstance(entry, File | Binary):
            raise fail(errno.EISDIR)
        return entry

    def getattr(self, path: str, fh: int | None = None) -> dict[str, Any]:  # noqa: ARG002
        """Type, mode and a page as size, as sysfs has it."""
        entry = self._entry(path)
        common = {"st_nlink": 1, "st_uid": 0, "st_gid": 0, "st_ino": _inode(path, entry)}
        if isinstance(entry, Link):
            return {**common, "st_mode": stat.S_IFLNK | 0o777, "st_size": len(entry.target)}
        if isinstance(entry, Directory):
            return {**common, "st_mode": stat.S_IFDIR | 0o755, "st_size": 0}
        return {**common, "st_mode": stat.S_IFREG | entry.mode, "st_size": _PAGE}

    def readdir(self, path: str, fh: int) -> Iterable[tuple[str, dict[str, int], int]]:  # noqa: ARG002
        """Names in a directory, each with its inode number: a shell's wildcard passes over names whose number is 0."""
        tree = self._fresh(live=path.startswith(_LIVE) or path.endswith("/net"))
        entry = tree.get(path)
        if not isinstance(entry, Directory):
            raise fail(errno.ENOTDIR)
        below = {name: f"{path.rstrip('/')}/{name}" for name in entry.names}
        here = _inode(path, entry)
        numbers = {".": here, "..": here} | {name: _inode(place, tree.get(place)) for name, place in below.items()}
        return [(name, {"st_ino": number}, 0) for name, number in numbers.items()]

    def readlink(self, path: str) -> str:
        """Where a link points."""
        entry = self._entry(path)
        if not isinstance(entry, Link):
            raise fail(errno.EINVAL)
        return entry.target

    def open(self, path: str, flags: int) -> int:
        """Refuses what sysfs refuses even to root."""
        if flags & (os.O_WRONLY | os.O_RDWR) and self._file(path).write is None:
            raise fail(errno.EACCES)
        return 0

    def read(self, path: str, size: int, offset: int, fh: int) -> bytes:  # noqa: ARG002
        """The attribute's text, read now."""
        file = self._file(path)
        if isinstance(file, Binary):
            whole = file.read()
            shown = whole if mfusepy.fuse_get_context()[0] == 0 else whole[: file.public]
            return shown[offset : offset + size]
        return file.part(size, offset)

    def write(self, path: str, data: bytes, offset: int, fh: int) -> int:  # noqa: ARG002
        """One write is one setting."""
        file = self._file(path)
        if isinstance(file, Binary):
            with self._hw.writes.write("sysfs", f"/sys{path}@{offset:#x}", data.hex(), _writer_lives()):
                file.write(offset, data)
            return len(data)
        setter = file.write
        if setter is None:
            raise fail(errno.EACCES)
        text = data.decode(errors="replace")
        with self._hw.writes.write("sysfs", f"/sys{path}", text.rstrip("\n"), _writer_lives()):
            setter(text)
        return len(data)

    def truncate(self, path: str, length: int, fh: int | None = None) -> int:  # noqa: ARG002
        """The shell truncates before it writes; sysfs does not mind."""
        self._file(path)
        return 0

    def create(self, path: str, mode: int, fi: int | None = None) -> int:  # noqa: ARG002
        """No file can be made in sysfs."""
        raise fail(errno.EACCES)

    def unlink(self, path: str) -> int:  # noqa: ARG002
        """Nor removed."""
        raise fail(errno.EPERM)

    def mkdir(self, path: str, mode: int) -> int:  # noqa: ARG002
        """Only configfs makes directories."""
        parent, _, name = path.rpartition("/")
        make = self._directory(parent).make
        if make is None:
            raise fail(errno.EPERM)
        with self._hw.writes.write("sysfs", f"/sys{path}", "mkdir", _writer_lives()):
            make(name)
        return 0

    def rmdir(self, path: str) -> int:
        """Only configfs removes them."""
        remove = self._directory(path).remove
        if remove is None:
            raise fail(errno.EPERM)
        with self._hw.writes.write("sysfs", f"/sys{path}", "rmdir", _writer_lives()):
            remove()
        return 0

    def _directory(self, path: str) -> Directory:
        entry = self._entry(path or "/")
        if not isinstance(entry, Directory):
            raise fail(errno.ENOTDIR)
        return entry


def _inode(path: str, entry: Entry) -> int:
    """A number that the path keeps until it is made anew, as by a driver that is loaded again."""
    return zlib.crc32(path.encode()) + (getattr(entry, "generation", 0) << 32)


def _writer_lives() -> Callable[[], bool]:
    """A test whether the thread behind the request in hand still wants it.

    One that is killed stays until its write returns, with the signal pending: that is when to let it go.
    """
    status = Path(f"/proc/{mfusepy.fuse_get_context()[2]}/status")

    def lives() -> bool:
        try:
            pending = re.findall(r"^(?:Sig|Shd)Pnd:\t(\w+)$", status.read_text(), re.MULTILINE)
        except OSError:
            return False
        return not any(int(mask, 16) & _SIGKILL_BIT for mask in pending)

    return lives


def serve(hw: Hardware, mountpoint: Path) -> None:
    """Mounts /sys of the machine and answers until unmounted or told to end."""
    mfusepy.FUSE(
        Sysfs(hw),
        str(mountpoint),
        foreground=True,
        fsname="gpufab-lab",
        subtype="sysfs",
        allow_other=True,
        default_permissions=True,
        direct_io=True,
        use_ino=True,
        dev=False,
        suid=False,
        entry_timeout=NAME_CACHE_S,
        attr_timeout=NAME_CACHE_S,
        negative_timeout=0,
    )
