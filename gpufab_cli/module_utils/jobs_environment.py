"""What running jobs have in their environment about NCCL, UCX and Open MPI; nothing else of it leaves the node.

A user may put anything there, in any number of processes. What is kept of each variable, process and node is bounded,
so that nobody's environment costs the others their audit; what was cut is said, process by process.
"""

import re
from dataclasses import dataclass
from typing import Dict, Iterator, List, Tuple, Union

from .change import Finding, Unknown
from .host import Reader
from .processes import DeviceFile, Process, holders

NAMES = r"(?:NCCL|UCX|OMPI_MCA)_[A-Za-z0-9_]+"
GPUS = tuple(DeviceFile(f"195:{minor}", f"/dev/nvidia{minor}") for minor in range(254))
"""The GPUs by the driver's number (Documentation/admin-guide/devices.txt); 254 and 255 are no GPUs."""

# A sane job has some dozens of variables, of which the longest lists its devices.
ENVIRONMENT = 1 << 18  # characters of an environment that are read
VARIABLE = 1 << 14  # characters of a name and its value
PROCESS = 1 << 15  # characters of all that is kept of a process
NODE = 1 << 19  # characters of all that is kept of a node
JOBS = 256
PIDS = 16
NAMED = 4
"""So many variables that were cut are named of each process."""


@dataclass(frozen=True)
class Job:
    """Processes that hold a GPU open and have one environment, as far as it is of interest.

    ``pids`` are the first of ``count`` processes. ``cut`` says what of it is not kept; "" where all is.
    """

    name: str
    pids: Tuple[str, ...]
    variables: Dict[str, str]
    count: int = 1
    cut: str = ""

    def __str__(self) -> str:
        more = f" and {self.count - 1} more" if self.count > 1 else ""
        return f"{self.name} (process {self.pids[0]}{more})"


Own = Tuple[Tuple[str, str], ...]
Key = Tuple[str, Own, str]


def gather(host: Reader) -> Union[Tuple[Job, ...], Unknown]:
    """The processes on the GPUs, those alike together; Unknown unless all of them could be looked at."""
    held = holders(host, GPUS)
    if isinstance(held, Unknown):
        return held
    alike: Dict[Key, List[str]] = {}
    beyond: List[Process] = []
    left = NODE
    for process in sorted({process for own in held.values() for process in own}, key=lambda found: int(found.pid)):
        key = _read(host, process)
        if isinstance(key, Unknown):
            return key
        size = 0 if key in alike else _size(key)
        if size > left or (key not in alike and len(alike) == JOBS):
            beyond.append(process)
        elif key[1] or key[2]:
            alike.setdefault(key, []).append(process.pid)
            left -= size
    return (*(_job(key, pids) for key, pids in alike.items()), *_beyond(beyond))


def _job(key: Key, pids: List[str]) -> Job:
    return Job(key[0], tuple(pids[:PIDS]), dict(key[1]), len(pids), key[2])


def _beyond(processes: List[Process]) -> Iterator[Job]:
    """The processes for which there was no room, in one."""
    if processes:
        why = f"not looked at: other jobs' variables are more than {NODE} characters, or of more than {JOBS} kinds"
        yield _job((processes[0].name, (), why), [process.pid for process in processes])


def unread(jobs: Union[Tuple[Job, ...], Unknown], code: str) -> Iterator[Finding]:
    """What of running jobs is not known."""
    if isinstance(jobs, Unknown):
        yield Finding(code, ("jobs",), jobs.reason, unknown=True)
        return
    yield from (Finding(code, (str(job),), job.cut, unknown=True) for job in jobs if job.cut)


def _size(key: Key) -> int:
    name, own, cut = key
    return len(name) + len(cut) + sum(len(variable) + len(value) for variable, value in own)


def _read(host: Reader, process: Process) -> Union[Key, Unknown]:
    """The key of what a process has: its name, the variables that are kept, and what was cut."""
    text = host.head(f"/proc/{process.pid}/environ", ENVIRONMENT + 1)
    if isinstance(text, Unknown):
        return text
    words = text.split("\0") if isinstance(text, str) else []
    whole = not isinstance(text, str) or len(text) <= ENVIRONMENT
    pairs = sorted(pair for pair in map(_pair, words if whole else words[:-1]) if pair is not None)
    own: List[Tuple[str, str]] = []
    cut: List[str] = []
    left = PROCESS
    for name, value in pairs:
        if len(name) + len(value) > min(VARIABLE, left):
            cut.append(name)
        else:
            own.append((name, value))
            left -= len(name) + len(value)
    return process.name, tuple(own), "; ".join(_cut(cut, whole=whole))


def _pair(word: str) -> Union[Tuple[str, str], None]:
    name, _, value = word.partition("=")
    return (name, value) if re.fullmatch(NAMES, name) else None


def _cut(names: List[str], *, whole: bool) -> Iterator[str]:
    if names:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        yield f"too long to be looked at: {', '.join(name[:80] for name in names[:NAMED])}{more}"
    if not whole:
        yield f"its environment is longer than {ENVIRONMENT} characters: the rest is not looked at"
