"""A tree of sysfs files: constants, live readings and settings."""

import errno
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from gpufab_cli.lab.hardware.model import fail

Read = Callable[[], str]
Write = Callable[[str], None]


class File(NamedTuple):
    """An attribute. Without `write` it is 0444, and opening it for writing fails even for root, as in the kernel.

    One that is `counted` gives a byte less than is asked for, as the kernel counts the NUL behind lists and masks of
    CPUs (drivers/base/node.c, topology.c): to a read of one byte, as dash's `read` makes, it is at its end.
    """

    read: Read
    write: Write | None = None
    mode: int = 0o444
    counted: bool = False

    def part(self, size: int, offset: int) -> bytes:
        """What a read gives."""
        text = self.read().encode()
        return (text + b"\0")[offset : offset + size][:-1] if self.counted else text[offset : offset + size]


class Binary(NamedTuple):
    """Registers: bytes, written at a place. Who is not root sees the first `public` of them."""

    read: Callable[[], bytes]
    write: Callable[[int, bytes], None]
    public: int
    mode: int = 0o644


class Link(NamedTuple):
    """A symbolic link; how often it was made."""

    target: str
    generation: int = 0


@dataclass
class Directory:
    """A directory. `make` and `remove` exist only in configfs; `remove` is what rmdir of this directory does."""

    names: list[str] = field(default_factory=list)
    make: Callable[[str], None] | None = None
    remove: Callable[[], None] | None = None


Entry = File | Binary | Link | Directory


class Tree:
    """Entries by path; parents come by themselves."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {"/": Directory()}
        self._unfilled: dict[str, Callable[[Tree], None]] = {}
        self._filling = threading.Lock()

    def _add(self, path: str, entry: Entry) -> None:
        parent, _, name = path.rpartition("/")
        directory = self.directory(parent or "/")
        if path not in self._entries:
            directory.names.append(name)
        self._entries[path] = entry

    def later(self, path: str, fill: Callable[["Tree"], None]) -> None:
        """A directory that is filled when it is first looked into, as of hundreds of CPUs hardly any is."""
        self.directory(path)
        self._unfilled[path] = fill

    def _fill(self, path: str) -> None:
        """Fills what a path leads through."""
        names = path.split("/")
        for depth in range(2, len(names) + 1):
            fill = self._unfilled.pop("/".join(names[:depth]), None)
            if fill:
                fill(self)

    def directory(self, path: str) -> Directory:
        """The directory at a path, made if need be."""
        known = self._entries.get(path)
        if isinstance(known, Directory):
            return known
        made = Directory()
        self._add(path, made)
        return made

    def text(self, path: str, value: object, mode: int = 0o444) -> None:
        """A constant."""
        line = _line(value)
        self._add(path, File(lambda: line, mode=mode))

    def counted(self, path: str, value: object) -> None:
        """A list or mask of CPUs that is a constant. It ends its line also where it is empty: a node without CPUs."""
        self._add(path, File(lambda: f"{value}\n", counted=True))

    def live(self, path: str, read: Callable[[], object], write: Write | None = None, mode: int = 0) -> None:
        """A reading taken at each read, writable when `write` is given; nothing reads as an empty file."""
        self._add(path, File(lambda: _line(read()), write, mode or (0o644 if write else 0o444)))

    def binary(self, path: str, binary: Binary) -> None:
        """Registers of a device."""
        self._add(path, binary)

    def link(self, path: str, target: str, generation: int = 0) -> None:
        """A link to an absolute path of the tree, written relative as the kernel does."""
        here, there = path.split("/")[1:-1], target.split("/")[1:]
        common = 0
        while common < min(len(here), len(there)) and here[common] == there[common]:
            common += 1
        self._add(path, Link("/".join([".."] * (len(here) - common) + there[common:]), generation))

    def find(self, path: str) -> Entry | None:
        """The entry at a path, if there is one."""
        with self._filling:
            if path in self._unfilled or path not in self._entries:
                self._fill(path)
            return self._entries.get(path)

    def get(self, path: str) -> Entry:
        """The entry at a path.

        Raises:
            OSError: ENOENT.
        """
        entry = self.find(path)
        if entry is None:
            raise fail(errno.ENOENT)
        return entry


def _line(value: object) -> str:
    return "" if value == "" else f"{value}\n"


def number(text: str, low: int, high: int, beyond: int = errno.EINVAL) -> int:
    """Parses what was written to a numeric attribute.

    Raises:
        OSError: EINVAL for what is no number, `beyond` outside low..high.
    """
    try:
        value = int(text.strip(), 0)
    except ValueError:
        raise fail(errno.EINVAL) from None
    if not low <= value <= high:
        raise fail(beyond)
    return value
