"""Files on this machine: read only where they are files, written whole or not at all."""

import contextlib
import errno
import functools
import os
import re
import socket
import stat
import time
from pathlib import Path

from gpufab_cli.errors import GpufabError
from gpufab_cli.module_utils.writing import left_behind

FILE_MODE = 0o644
FOREIGN_SECONDS = 86400.0
"""So old is what another machine that shares the folder cannot be writing any more."""

_KINDS = (
    (stat.S_ISDIR, "a directory"),
    (stat.S_ISFIFO, "a FIFO"),
    (stat.S_ISSOCK, "a socket"),
    (stat.S_ISCHR, "a device"),
    (stat.S_ISBLK, "a device"),
)


def read(path: Path, most: int) -> bytes:
    """Read a regular file up to one byte more than ``most``; anything else is refused at once, whoever would write it.

    Raises:
        FileNotFoundError: there is none.
        GpufabError: it is no regular file, or cannot be read.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | os.O_NOCTTY)
    except FileNotFoundError:
        raise
    except OSError as error:
        kind = "a socket, not a regular file" if error.errno == errno.ENXIO else error.strerror
        raise GpufabError(f"{path}: {kind}") from error
    try:
        _refuse_odd(path, os.fstat(handle).st_mode)
        with os.fdopen(handle, "rb", closefd=False) as stream:
            return stream.read(most + 1)
    except OSError as error:
        raise GpufabError(f"{path}: {error.strerror}") from error
    finally:
        os.close(handle)


def _refuse_odd(path: Path, mode: int) -> None:
    if not stat.S_ISREG(mode):
        kind = next((words for is_kind, words in _KINDS if is_kind(mode)), "something else")
        raise GpufabError(f"{path}: {kind}, not a regular file", "name a file")


def replace(path: Path, content: str | bytes, mode: int = FILE_MODE) -> None:
    """Write a file whole or not at all; who reads it sees the old content or the new. Folders are made.

    Raises:
        GpufabError: the file system refuses; what was there is there still.
    """
    raw = content.encode() if isinstance(content, str) else content
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        sweep(path.parent)
        _replace(path, raw, mode)
    except OSError as error:
        raise GpufabError(f"{path}: {error.strerror}") from error


def _replace(path: Path, raw: bytes, mode: int) -> None:
    temporary = path.parent / f".{path.name}.{_machine()}.{os.getpid()}.gpufab"
    temporary.unlink(missing_ok=True)  # of a process that had this number
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(raw)
            stream.flush()
            os.fchmod(handle, mode)
            os.fsync(handle)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _machine() -> str:
    return re.sub("[^A-Za-z0-9_-]", "-", socket.gethostname())


_LEFT = re.compile(r"\..+\.([A-Za-z0-9_-]+)\.([0-9]+)\.gpufab")


@functools.cache
def sweep(folder: Path) -> None:
    """Remove what killed writes have left behind in a folder; once a run, for an audit saves a file a host."""
    for entry in os.scandir(folder):
        match = _LEFT.fullmatch(entry.name)
        if match is None:
            continue
        with contextlib.suppress(OSError):
            written = entry.stat(follow_symlinks=False).st_mtime
            here = match[1] == _machine()
            if left_behind(int(match[2]), written) if here else time.time() - written > FOREIGN_SECONDS:
                Path(entry.path).unlink()
