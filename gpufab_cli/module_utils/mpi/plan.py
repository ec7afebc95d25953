"""Decide what would change in what MPI and UCX are told on a node. Pure."""

from typing import Iterator, List, Mapping

from .. import rails, settings_file
from ..change import Change, Finding, Plan, Step, Unknown, Where
from ..host import sha256
from ..settings_file import NOT_ASKED
from ..snapshot import Snapshot
from . import files, values
from .judge import findings
from .seen import MpiSeen
from .want import MpiWant

FEATURE = "mpi"
CODE = "mpi.file"


def plan(snapshot: Snapshot, want: MpiWant) -> Plan:
    """A step a file; none touches traffic: the files are read when a job starts."""
    seen: MpiSeen = snapshot.seen[FEATURE]
    found: List[Finding] = []
    steps = [_program(seen), *_steps(snapshot, seen, want, found)]
    found += findings(snapshot.devices, seen, want)
    return Plan(tuple(step for step in steps if step.changes), findings=tuple(found))


def _program(seen: MpiSeen) -> Step:
    wanted = sha256(files.SCRIPT)
    change = Change((files.PROGRAM,), seen.program, wanted, CODE, Where.PERSISTED)
    return Step(f"{FEATURE} gpufab-bind", (change,) if seen.program != wanted else ())


def _steps(snapshot: Snapshot, seen: MpiSeen, want: MpiWant, found: List[Finding]) -> Iterator[Step]:
    """A step for each file whose values are known; what keeps others from being known goes to ``found``."""
    sockets = values.sockets(snapshot.devices, want)
    devices = rails.names(snapshot.devices, want.rails)
    found += [item for item in (sockets, devices) if isinstance(item, Finding)]
    if isinstance(sockets, tuple):
        for install in seen.installs:
            if isinstance(install.major, Unknown):
                found.append(Finding("mpi.release", (install.folder,), install.major.reason, unknown=True))
                continue
            yield _step(files.openmpi(install), seen, want, values.openmpi(seen, want, install, sockets))
            if install.major >= files.MAJOR_OF_PRTE:
                yield _step(files.prte(install), seen, want, values.prte(want, sockets))
    if isinstance(devices, tuple) and seen.ucx is not None:
        step = _step(files.UCX_CONF, seen, want, values.ucx(want, devices))
        yield rails.waiting(step, values.TC, want.rails, seen.ports, want.roce)


def _step(path: str, seen: MpiSeen, want: MpiWant, wanted: Mapping[str, str]) -> Step:
    form, text = files.form(path), seen.files.get(path, NOT_ASKED)
    theirs = settings_file.conflicts(form, text, wanted.items())
    blocked = settings_file.refusal(theirs, takeover=bool(want.takeover))
    return Step(f"{FEATURE} {path}", settings_file.changes(path, form, text, wanted, CODE), blocked=blocked)
