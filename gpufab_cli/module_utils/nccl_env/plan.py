"""Decide what would change in what NCCL is told on a node. Pure."""

from typing import Dict, Iterator, Union

from .. import jobs_environment, rails, settings_file
from ..change import ABSENT, Finding, Plan, Step, Unknown
from ..devices import Devices
from ..settings_file import NOT_ASKED
from ..snapshot import Snapshot
from . import files
from .judge import Node, judge
from .seen import NcclEnvSeen, OtherFile
from .values import Told, told
from .variables import TC
from .want import NcclEnvWant

FEATURE = "nccl_env"
CODE = "nccl.file"


def plan(snapshot: Snapshot, want: NcclEnvWant) -> Plan:
    """A step a file; none touches traffic: NCCL reads its files when a job starts."""
    seen: NcclEnvSeen = snapshot.seen[FEATURE]
    tell = told(snapshot.devices, seen, want)
    steps = (_step(path, seen, want, tell) for path in files.paths(want))
    findings = (*tell.findings, *_findings(snapshot.devices, seen, want))
    return Plan(tuple(step for step in steps if step.changes), findings=tuple(dict.fromkeys(findings)))


def _step(path: str, seen: NcclEnvSeen, want: NcclEnvWant, tell: Told) -> Step:
    form, text = files.form(path), seen.files.get(path, NOT_ASKED)
    changes = settings_file.changes(path, form, text, tell.values, CODE)
    if tell.blocked:  # what cannot be told anew now stays as it is
        return Step(f"{FEATURE} {path}", tuple(c for c in changes if c.desired is not ABSENT), blocked=tell.blocked)
    theirs = settings_file.conflicts(form, text, tell.values.items())
    step = Step(f"{FEATURE} {path}", changes, blocked=settings_file.refusal(theirs, takeover=bool(want.takeover)))
    return rails.waiting(step, TC, want.rails, seen.ports, want.roce)


def _findings(devices: Devices, seen: NcclEnvSeen, want: NcclEnvWant) -> Iterator[Finding]:
    node = Node(devices, seen, want)
    conf = seen.files.get(files.NCCL_CONF)
    sources: Dict[str, Union[OtherFile, Unknown]] = dict(seen.homes)
    if isinstance(conf, str):
        sources = {files.NCCL_CONF: files.other_file(conf), **sources}
    for path, item in sources.items():
        if isinstance(item, Unknown):
            # Homes on NFS keep root out: that is told, and casts no doubt on all else.
            yield Finding("nccl.unread", (path,), item.reason)
            continue
        if item.cut:
            yield Finding("nccl.unread", (path,), item.cut)
        yield from (Finding("nccl.grammar", (path,), line) for line in item.bad_lines)
        yield from judge(node, path, item.values)
    if seen.unread_homes is not None:
        yield Finding("nccl.unread", ("/home",), seen.unread_homes)
    yield from jobs_environment.unread(seen.jobs, "nccl.unread")
    for job in seen.jobs if isinstance(seen.jobs, tuple) else ():
        yield from judge(node, str(job), job.variables)
    for who, path in seen.missing:
        yield Finding("nccl.topo-file", (who, path), "not there: NCCL goes on without it and says nothing")
