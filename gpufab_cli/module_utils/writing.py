"""How a node's files are written: whole or not at all, and with the same modes whatever root's umask is.

A full or failing disk takes a part of what it is given (write(2)), and hardened systems have root's umask at 077.
"""

import errno
import os
import re
import time
from contextlib import suppress

PRIVATE = "/var/lib/gpufab"
"""Only root may look into this folder of gpufab's, and into those below it."""
PUBLIC_MODE, PRIVATE_MODE = 0o755, 0o700


CLOCK_SECONDS = 60.0
"""By so much a clock may have been set since a file was written, without the file seeming older than the boot."""


def folder_mode(path: str) -> int:
    """The mode of a folder that gpufab makes."""
    return PRIVATE_MODE if path == PRIVATE or path.startswith(PRIVATE + "/") else PUBLIC_MODE


def make_folders(root: str, path: str) -> None:
    """Make a folder of the node and those above it. One that is there already keeps its mode: it may be the site's."""
    missing = []
    while path.strip("/") and not os.path.isdir(root + path):
        missing.append(path)
        path = os.path.dirname(path)
    for folder in reversed(missing):
        try:
            os.mkdir(root + folder)
        except FileExistsError:
            if not os.path.isdir(root + folder):
                raise
        else:
            os.chmod(root + folder, folder_mode(folder))


def replace(target: str, content: bytes, mode: int) -> None:
    """Replace a regular file as a whole: readers see the old content or the new, also after a power cut."""
    temporary = _temporary(target)
    try:
        with open(temporary, "wb") as stream:
            os.fchmod(stream.fileno(), mode)  # before there is anything to read
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except BaseException:
        discard(temporary)
        raise
    _sync_directory(os.path.dirname(target))


def link(path: str, target: str) -> None:
    """Make ``path`` a symbolic link to ``target`` in one move, whatever is there."""
    temporary = _temporary(path)
    try:
        os.symlink(target, temporary)
        os.replace(temporary, path)
    except BaseException:
        discard(temporary)
        raise


def _temporary(target: str) -> str:
    """Name the file that becomes the target, and remove those that killed writes of the same target have left."""
    folder, name = os.path.split(target)
    names = re.compile(re.escape(name) + r"\.([0-9]+)\.gpufab")
    mine = target + "." + str(os.getpid()) + ".gpufab"
    with suppress(FileNotFoundError):
        for entry in os.listdir(folder or "."):
            match = names.fullmatch(entry)
            path = os.path.join(folder, entry)
            with suppress(OSError):
                if match and (path == mine or left_behind(int(match.group(1)), os.lstat(path).st_mtime)):
                    discard(path)
    return mine


def left_behind(pid: int, written: float) -> bool:
    """Tell whether nobody writes a temporary file any more.

    Args:
        pid: of the process that made it.
        written: when it was last written, in seconds since the epoch.
    """
    if written < time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) - CLOCK_SECONDS:
        return True  # before this boot: the number is another process's by now
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return True
    except OSError:
        return False  # it is there, and somebody else's
    return False


def append(target: str, line: bytes, mode: int) -> None:
    """Append one line and have it on disk. What cannot be written whole is taken away again.

    Half a line that is there already, such as a power cut leaves, gets its end first: it swallows no other.
    """
    handle = os.open(target, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, mode)
    try:
        size = os.fstat(handle).st_size
        if not size:
            os.fchmod(handle, mode)
        torn = size and os.pread(handle, 1, size - 1) != b"\n"
        try:
            _write_all(handle, b"\n" * bool(torn) + line + b"\n")
            os.fsync(handle)
        except OSError:
            with suppress(OSError):
                os.ftruncate(handle, size)
            raise
    finally:
        os.close(handle)


def _write_all(handle: int, content: bytes) -> None:
    while content:
        count = os.write(handle, content)
        if not count:
            raise OSError(errno.EIO, "nothing was written")
        content = content[count:]


def set_attribute(target: str, value: str) -> None:
    """Write a value into an attribute, in the one write that the kernel takes it by."""
    handle = os.open(target, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        _taken(os.write(handle, (value + "\n").encode()), len(value.encode()))
    finally:
        os.close(handle)


def patch(target: str, offset: int, content: bytes) -> None:
    """Write some bytes of an existing file in one go."""
    handle = os.open(target, os.O_WRONLY | os.O_CLOEXEC)
    try:
        _taken(os.pwrite(handle, content, offset), len(content))
    finally:
        os.close(handle)


def _taken(count: int, wanted: int) -> None:
    if count < wanted:
        raise OSError(errno.EIO, f"only {count} of {wanted} bytes were taken")


def discard(path: str) -> None:
    """Remove a file; one that is gone is fine."""
    with suppress(FileNotFoundError):
        os.unlink(path)


def _sync_directory(path: str) -> None:
    handle = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
