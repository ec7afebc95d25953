"""The only two doors to a node: :class:`Reader`, which cannot write, and :class:`Host`, which can.

Nothing else in the core opens a file, runs a program or looks at the clock. A value that cannot be read comes back as
:class:`~.change.Unknown`; a file that is not there as :data:`~.change.ABSENT`.
"""

import errno
import fcntl
import hashlib
import os
import stat
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Callable, Dict, Iterator, Sequence, Tuple, Union

from . import programs, writing
from .change import ABSENT, Absent, Unknown
from .programs import SEARCH_PATH, HangError, HostError, Output
from .queries import allowed, batch
from .stats import StatReader, unreadable

if TYPE_CHECKING:
    from . import nvml

__all__ = [
    "SEARCH_PATH",
    "BusyLockError",
    "ForbiddenQueryError",
    "HangError",
    "Host",
    "HostError",
    "Output",
    "Reader",
    "sha256",
]

QUERY_SECONDS = 10.0
RUN_SECONDS = 60.0
NODE_LOCK = "/run/gpufab.lock"
"""Held by who changes the node: apply, restore, and a claim while it is taken."""
USERS_BYTES = 1 << 18  # characters of a user's file that are read; NCCL's own are far smaller

Text = Union[str, Absent, Unknown]
Names = Union[Tuple[str, ...], Absent, Unknown]


class ForbiddenQueryError(Exception):
    """A query outside the allow-list: a mistake in gpufab, never a state of the node."""


class BusyLockError(HostError):
    """Another gpufab holds the node."""


class Reader(StatReader):
    """Reads a node. ``root`` is where its file system starts."""

    def __init__(self, root: str = "/") -> None:
        super().__init__(root)
        # A tool that hung once is not asked again: eight ports would take eight time limits, and the audit with them.
        self._hung: Dict[str, str] = {}

    def read(self, path: str) -> Text:
        """The text of a file without its trailing newline."""
        try:
            with open(self._path(path), encoding="utf-8", errors="surrogateescape") as stream:
                return stream.read().rstrip("\n")
        except OSError as error:
            return unreadable(path, error)

    def read_of_user(self, path: str) -> Text:
        """As :meth:`read`, of a file in a directory that is not root's own: no link, pipe or device is read there."""
        try:
            handle = os.open(self._path(path), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with open(handle, encoding="utf-8", errors="surrogateescape") as stream:
                found = os.fstat(handle)
                if not stat.S_ISREG(found.st_mode) or found.st_nlink > 1:
                    return Unknown(f"{path}: no regular file with one name")
                return stream.read(USERS_BYTES).rstrip("\n")
        except OSError as error:
            return Unknown(f"{path}: a link is not followed") if error.errno == errno.ELOOP else unreadable(path, error)

    def head(self, path: str, most: int) -> Text:
        """The first characters of a file, ``most`` at most, as they are."""
        try:
            with open(self._path(path), encoding="utf-8", errors="surrogateescape", newline="") as stream:
                return stream.read(most)
        except OSError as error:
            return unreadable(path, error)

    def read_bytes(self, path: str) -> Union[bytes, Absent, Unknown]:
        """The bytes of a file."""
        try:
            with open(self._path(path), "rb") as stream:
                return stream.read()
        except OSError as error:
            return unreadable(path, error)

    def tail(self, path: str, limit: int) -> Text:
        """The whole lines among the last ``limit`` bytes of a file."""
        try:
            with open(self._path(path), "rb") as stream:
                start = max(0, stream.seek(0, os.SEEK_END) - limit)
                stream.seek(start)
                text = stream.read(limit).decode("utf-8", "replace")
        except OSError as error:
            return unreadable(path, error)
        return text.partition("\n")[2] if start else text

    def names(self, path: str) -> Names:
        """The names in a directory, sorted."""
        try:
            return tuple(sorted(os.listdir(self._path(path))))
        except OSError as error:
            return unreadable(path, error)

    def link(self, path: str) -> Text:
        """Where a symbolic link points, as it is written."""
        try:
            return os.readlink(self._path(path))
        except OSError as error:
            return ABSENT if error.errno == errno.EINVAL else unreadable(path, error)

    def installed(self, program: str) -> bool:
        """Whether a program is there to be run."""
        return programs.find(program, self._root) is not None

    def query(self, *argv: str) -> Union[Output, Unknown]:
        """What a command that only looks prints; Unknown when it is missing, hangs or cannot be started.

        Raises:
            ForbiddenQueryError: the command line is not on the allow-list.
        """
        if not allowed(argv):
            raise ForbiddenQueryError(" ".join(argv))
        return self._look(argv)

    def batch(self, commands: Sequence[Sequence[str]]) -> Union[Output, Unknown]:
        """What a program prints that is given several such commands on its stdin; Unknown likewise.

        Raises:
            ForbiddenQueryError: one of them is not on the allow-list, or nothing runs them all.
        """
        found = batch(commands)
        if found is None:
            raise ForbiddenQueryError("; ".join(" ".join(command) for command in commands))
        return self._look(*found)

    def _look(self, argv: Sequence[str], stdin: str = "") -> Union[Output, Unknown]:
        if argv[0] in self._hung:
            return Unknown(self._hung[argv[0]])
        try:
            return programs.run(argv, QUERY_SECONDS, stdin)
        except HangError as error:
            self._hung[argv[0]] = str(error)
            return Unknown(str(error))
        except HostError as error:
            return Unknown(str(error))

    def has_nvml(self) -> bool:
        """Whether the node has NVML."""
        from . import nvml

        return nvml.library() is not None

    def nvml(self, question: "Callable[[nvml.Getters], Any]") -> Any:
        """What NVML says, as JSON data; ABSENT where the node has no NVML, Unknown when it fails or hangs."""
        from . import nvml

        return nvml.ask(nvml.Getters, question, QUERY_SECONDS)

    def uid(self) -> int:
        """The user the program runs as; 0 is root."""
        return os.geteuid()

    def now(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def uptime(self) -> float:
        """Seconds since the boot, by a clock that nobody sets."""
        return time.clock_gettime(time.CLOCK_BOOTTIME)


class Host(Reader):
    """A node that may be changed. Every method raises :class:`HostError` with what failed."""

    def run(self, *argv: str, seconds: float = RUN_SECONDS) -> Output:
        """Run a command that changes the node; a non-zero exit is an error, and so is no end within ``seconds``."""
        output = programs.run(argv, seconds)
        if output.rc != 0:
            raise HostError(f"{' '.join(argv)}: {output.error}")
        return output

    def attempt(self, *argv: str, seconds: float = RUN_SECONDS) -> Output:
        """Run a command that changes the node, whose exit status is for the caller to judge."""
        return programs.run(argv, seconds)

    def set_nvml(self, order: "Callable[[nvml.Setters], Any]") -> None:
        """Have NVML set something."""
        from . import nvml

        answer = nvml.ask(nvml.Setters, order, RUN_SECONDS)
        if isinstance(answer, (Absent, Unknown)):
            raise HostError(answer.reason if isinstance(answer, Unknown) else f"there is no {nvml.LIBRARY}")

    def set(self, path: str, value: str) -> None:
        """Write a value into an existing attribute of sysfs or configfs, as ``echo value > path`` would."""
        with _failing("write", path):
            writing.set_attribute(self._path(path), value)

    def patch(self, path: str, offset: int, content: bytes) -> None:
        """Write some bytes of an existing file in one go, such as a register of a device's configuration space."""
        with _failing("write", path):
            writing.patch(self._path(path), offset, content)

    def put(self, path: str, content: bytes, mode: int = 0o644) -> None:
        """Replace a regular file as a whole: readers see the old content or the new, also after a power cut."""
        with _failing("write", path):
            self._make_folders(path)
            writing.replace(self._path(path), content, mode)

    def append(self, path: str, line: str, mode: int = 0o640) -> None:
        """Append one line to a log and have it on disk before returning, or leave the log as it is."""
        with _failing("append to", path):
            self._make_folders(path)
            writing.append(self._path(path), line.encode("utf-8", "surrogateescape"), mode)

    def _make_folders(self, path: str) -> None:
        writing.make_folders(self._root, os.path.dirname(path))

    def set_mode(self, path: str, mode: int) -> None:
        """Set the permission bits of a file or directory."""
        with _failing("set the mode of", path):
            os.chmod(self._path(path), mode)

    def rename(self, path: str, target: str) -> None:
        """Move a file within its file system."""
        with _failing("rename", path):
            os.replace(self._path(path), self._path(target))

    def symlink(self, path: str, target: str) -> None:
        """Make ``path`` a symbolic link to ``target``, replacing what is there."""
        with _failing("link", path):
            self._make_folders(path)
            writing.link(self._path(path), target)

    def remove(self, path: str) -> None:
        """Remove a file or link; one that is already gone is fine."""
        with _failing("remove", path):
            writing.discard(self._path(path))

    def make_directory(self, path: str) -> None:
        """Make one directory, as configfs wants it: no parents; one that exists is fine."""
        with _failing("make directory", path):
            try:
                os.mkdir(self._path(path))
            except FileExistsError:
                return

    def remove_directory(self, path: str) -> None:
        """Remove one directory, as configfs wants it; one that is already gone is fine."""
        with _failing("remove directory", path):
            try:
                os.rmdir(self._path(path))
            except FileNotFoundError:
                return

    def sleep(self, seconds: float) -> None:
        """Let time pass on the node."""
        time.sleep(seconds)

    @contextmanager
    def lock(self, path: str, seconds: float) -> Iterator[None]:
        """Hold the one lock that apply and restore share; wait for it at most ``seconds``.

        Raises:
            BusyLockError: somebody else still holds it.
        """
        with _failing("open", path):
            handle = os.open(self._path(path), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _wait_for_lock(handle, path, seconds)
            yield
        finally:
            fcntl.flock(handle, fcntl.LOCK_UN)  # a child that is stuck in a driver may have it open still (flock(2))
            os.close(handle)


def sha256(content: bytes) -> str:
    """The digest by which file contents are compared and shown."""
    return "sha256:" + hashlib.sha256(content).hexdigest()


@contextmanager
def _failing(verb: str, path: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise HostError(f"cannot {verb} {path}: {error.strerror or error}") from error


def _wait_for_lock(handle: int, path: str, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if time.monotonic() >= deadline:
                raise BusyLockError(f"another gpufab run or a restore holds {path} since {seconds:.0f} s") from error
            time.sleep(0.1)
        else:
            return
