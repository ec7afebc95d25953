"""Repositories of stand-ins, made once for all who ask: to make them takes seconds, to copy them none.

The folder that keeps them is named by what they are made from and with, so another version of either is made anew. It
is written, and removed, under a lock and beside its place: what is cut off leaves nothing that looks like a whole one.
"""

import fcntl
import hashlib
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gpufab_cli.lab.shell import run

_SOURCES = Path(__file__).parent
KEPT = _SOURCES.parents[1] / ".lab" / "standins"


def copy(folder: Path, build: Callable[[Path], None], kept: Path = KEPT) -> None:
    """Fills a new folder with a copy of what ``build`` makes, which is made if it is not kept yet."""
    whole, part = kept / _digest(), kept / "part"
    with _locked(kept):
        if not whole.exists():
            for old in (*kept.glob(part.name), *kept.iterdir()):  # cut off, and of other sources
                if old.is_dir():
                    shutil.rmtree(old.rename(part))
            build(part)
            part.rename(whole)
        shutil.copytree(whole, folder)


def _digest() -> str:
    """Of the sources, and of the programs that make packages of them."""
    found = hashlib.sha256()
    for path in sorted(_SOURCES.glob("*.py")):
        found.update(path.read_bytes())
    programs = (_SOURCES / "requirements-apt.txt").read_text().split()
    found.update(run(["dpkg-query", "--show", "dpkg", *programs]).encode())
    return found.hexdigest()[:16]


@contextmanager
def _locked(kept: Path) -> Iterator[None]:
    kept.mkdir(parents=True, exist_ok=True)
    with (kept / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
