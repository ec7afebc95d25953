"""Which processes of the node hold a verbs device open: found as lsof finds them, so a test may simply open one."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpufab_cli.lab.hardware.model import Hardware

_PROC = Path("/proc")
_VERBS = re.compile(r"/dev/infiniband/uverbs(\d+)$")


@dataclass(frozen=True)
class Holder:
    """A process, by its number and name inside the node, and the verbs device it holds."""

    pid: int
    comm: str
    index: int


def of_verbs(hw: Hardware) -> list[Holder]:
    """All holders of verbs devices; none while the node is down."""
    if hw.node is None:
        return []
    inside = _namespace(_PROC / str(hw.node.pid))
    found: list[Holder] = []
    for process in _PROC.iterdir():
        if process.name.isdigit() and inside is not None and _namespace(process) == inside:
            found.extend(_held(process))
    return sorted(found, key=lambda holder: (holder.index, holder.pid))


def _namespace(process: Path) -> str | None:
    try:
        return str((process / "ns" / "pid").readlink())
    except OSError:
        return None


def _held(process: Path) -> Iterator[Holder]:
    try:
        targets = [str(link.readlink()) for link in (process / "fd").iterdir()]
        indexes = {int(match[1]) for target in targets if (match := _VERBS.search(target))}
        if not indexes:
            return
        numbers = re.search(r"^NSpid:.*\t(\d+)$", (process / "status").read_text(), re.MULTILINE)
        comm = (process / "comm").read_text().strip()
    except OSError:  # it ended meanwhile
        return
    for index in sorted(indexes):
        yield Holder(int(numbers[1]) if numbers else 0, comm, index)
