"""What running jobs have in their environment about NCCL, UCX and Open MPI; nothing else of it leaves the node."""

import re
from dataclasses import dataclass
from typing import Dict, Tuple, Union

from .change import Unknown
from .host import Reader
from .processes import holders

NAMES = r"(?:NCCL|UCX|OMPI_MCA)_[A-Za-z0-9_]+"
GPUS = r"/dev/nvidia\d+"


@dataclass(frozen=True)
class Job:
    """Processes that hold a GPU open and have one environment, as far as it is of interest."""

    name: str
    pids: Tuple[str, ...]
    variables: Dict[str, str]

    def __str__(self) -> str:
        more = f" and {len(self.pids) - 1} more" if len(self.pids) > 1 else ""
        return f"{self.name} (process {self.pids[0]}{more})"


def gather(host: Reader) -> Union[Tuple[Job, ...], Unknown]:
    """The processes on the GPUs, those alike together; Unknown unless all of them could be looked at."""
    found = holders(host, GPUS)
    if isinstance(found, Unknown):
        return found
    jobs: Dict[Tuple[str, Tuple[Tuple[str, str], ...]], Tuple[str, ...]] = {}
    for process in found:
        text = host.read(f"/proc/{process.pid}/environ")
        if isinstance(text, Unknown):
            return text
        pairs = [item.partition("=") for item in text.split("\0")] if isinstance(text, str) else []
        own = tuple(sorted((name, value) for name, _, value in pairs if re.fullmatch(NAMES, name)))
        if own:
            jobs[process.name, own] = (*jobs.get((process.name, own), ()), process.pid)
    return tuple(Job(name, pids, dict(own)) for (name, own), pids in jobs.items())
