"""Whether users reach what is written for them, and nobody else what is not: permission bits on the way to a file.

A root whose umask is 077 (CIS benchmarks) makes directories that only root may search. Those of gpufab's own get their
mode back; those of the site are told.
"""

from dataclasses import replace
from typing import Dict, Iterator, List, Mapping, Tuple, Union

from .change import ABSENT, Absent, Change, Finding, Plan, Step, Unknown, Where
from .host import Host, Reader
from .writing import PRIVATE, folder_mode

FEATURE = "node"
STEP = "node directories"
CODE = "node.access"

OWN = ("/etc/gpufab", "/etc/gpufab/desired.d", "/usr/local/lib/gpufab", PRIVATE)
"""The folders that are gpufab's alone."""

READ, RUN = 0o004, 0o005
PUBLIC: Mapping[str, int] = {
    "/etc/nccl.conf": READ,
    "/etc/enroot/environ.d/50-gpufab-nccl.env": READ,
    "/etc/slurm/gpufab-task-prolog.sh": RUN,
    "/etc/gpufab/nccl.env": READ,
    "/etc/ucx/ucx.conf": READ,
    **{
        f"/etc/{folder}/{name}-mca-params.conf": READ
        for folder in ("openmpi", "openmpi-x86_64", "openmpi-aarch64")
        for name in ("openmpi", "prte")
    },
    "/usr/local/bin/gpufab-bind": RUN,
    "/usr/local/lib/gpufab/gpufab.pyz": READ,
}
"""What jobs read or run in their users' names, where it is there, and the bits that others need of it."""
SEARCH = 0o001

Modes = Mapping[str, Union[int, Absent, Unknown]]


def read(host: Reader) -> Dict[str, Union[int, Absent, Unknown]]:
    """The permission bits of all these, and of what lies above them."""
    paths = dict.fromkeys([*OWN, *PUBLIC, *(folder for path in PUBLIC for folder in above(path))])
    return {path: host.mode(path) for path in paths}


def above(path: str) -> Tuple[str, ...]:
    """The folders that lead to a path, but for the root."""
    parts = path.split("/")[1:-1]
    return tuple("/" + "/".join(parts[:count]) for count in range(1, len(parts) + 1))


def added(plan: Plan, modes: Modes) -> Plan:
    """The node's plan with the step that gives gpufab's folders their modes, and what is wrong with others."""
    changes = tuple(
        Change((path,), mode if isinstance(mode, Unknown) else f"{mode:04o}", f"{folder_mode(path):04o}", CODE, _WHERE)
        for path in OWN
        if not isinstance(mode := modes.get(path, ABSENT), Absent) and mode != folder_mode(path)
    )
    step = (Step(STEP, changes),) if changes else ()
    return replace(plan, steps=plan.steps + step, findings=(*plan.findings, *_findings(modes)))


_WHERE = Where.PERSISTED


def _findings(modes: Modes) -> Iterator[Finding]:
    """What users need and do not reach; each obstacle once, with all that lies behind it."""
    behind: Dict[Tuple[str, str], List[str]] = {}
    for path, bits in PUBLIC.items():
        if isinstance(modes.get(path, ABSENT), Absent):
            continue
        for place, needed in ((folder, SEARCH) for folder in above(path) if folder not in OWN):
            _note(behind, modes.get(place, ABSENT), place, needed, path)
        _note(behind, modes[path], path, bits, path)
    for (place, words), paths in behind.items():
        evidence = words if paths == [place] else f"{words}: users do not reach {', '.join(paths)}"
        yield Finding(CODE, (place,), evidence, unknown=words.startswith("UNKNOWN"))


def _note(
    behind: Dict[Tuple[str, str], List[str]], mode: Union[int, Absent, Unknown], place: str, needed: int, path: str
) -> None:
    if isinstance(mode, Unknown):
        behind.setdefault((place, str(mode)), []).append(path)
    elif isinstance(mode, int) and mode & needed != needed:
        behind.setdefault((place, f"it has mode {mode:04o}"), []).append(path)


def apply(step: Step, host: Host) -> None:
    """Set the modes; undone, they are what they were."""
    for change in step.changes:
        host.set_mode(change.path[0], int(str(change.desired), 8))
