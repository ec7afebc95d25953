"""How a node's files are written: whole or not at all, and with the same modes whatever root's umask is.

A full or failing disk takes a part of what it is given (write(2)), and hardened systems have root's umask at 077.
"""

import errno
import os
from contextlib import suppress

PRIVATE = "/var/lib/gpufab"
"""Only root may look into this folder of gpufab's, and into those below it."""
PUBLIC_MODE, PRIVATE_MODE = 0o755, 0o700


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
    temporary = f"{target}.{os.getpid()}.gpufab"
    try:
        with open(temporary, "wb") as stream:
            os.fchmod(stream.fileno(), mode)  # before there is anything to read
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        os.replace(temporary, target)
    except OSError:
        discard(temporary)
        raise
    _sync_directory(os.path.dirname(target))


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
