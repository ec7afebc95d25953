"""Where built things lie: outside git, in folders named by a hash of what they are made from."""

import fcntl
import hashlib
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
VARIABLE = "GPUFAB_VM_CACHE"
MOUNTS = Path("/proc/mounts")


def root() -> Path:
    """The folder of all of them; the environment may name another."""
    return Path(os.environ.get(VARIABLE) or REPOSITORY / ".lab" / "vm").resolve()


def digest(*inputs: str | Path) -> str:
    """A hash of words and of files; a folder counts with all its files, their names and modes."""
    found = hashlib.sha256()
    for given in inputs:
        if isinstance(given, str):
            found.update(f"word {given}\n".encode())
            continue
        for path in sorted(given.rglob("*")) if given.is_dir() else [given]:
            if path.is_file() and "__pycache__" not in path.parts:
                name = path.relative_to(given.parent)
                found.update(f"file {name} {path.stat().st_mode & 0o111:o}\n".encode() + path.read_bytes())
    return found.hexdigest()[:12]


def layer(name: str, key: str, build: Callable[[Path], None], say: Callable[[str], None]) -> Path:
    """The folder NAME-KEY, after `build` has filled it if need be.

    It is filled under another name and renamed when it is whole, so a build that was cut off is never taken for one.
    """
    wanted = root() / f"{name}-{key}"
    if wanted.is_dir():
        return wanted
    with _one_builder(name, say):
        if wanted.is_dir():
            return wanted
        half = root() / f"{name}.half"
        remove(half)
        half.mkdir()
        build(half)
        half.rename(wanted)
    return wanted


@contextmanager
def _one_builder(name: str, say: Callable[[str], None]) -> Iterator[None]:
    root().mkdir(parents=True, exist_ok=True)
    with (root() / f"{name}.lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            say(f"waiting for another who builds {name}")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def remove(folder: Path) -> None:
    """Takes away what an earlier build left; never what is mounted there."""
    mounted = [line.split()[1] for line in MOUNTS.read_text().splitlines()]
    inside = [path for path in mounted if Path(path).is_relative_to(folder)]
    if inside:
        raise RuntimeError(f"{inside[0]} is mounted; unmount it, then remove {folder}")
    if folder.exists():
        shutil.rmtree(folder)
