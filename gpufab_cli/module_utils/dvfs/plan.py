"""Decide what would change in the clocks and power of a node. Pure."""

from typing import Iterator, List

from ..change import Change, Finding, Plan, Step, Where
from ..host import sha256
from ..snapshot import Snapshot
from . import cpu_plan, gpu_plan, hooks
from .gpu_plan import FEATURE
from .seen import DvfsSeen
from .want import DvfsWant, JobsWant


def plan(snapshot: Snapshot, want: DvfsWant) -> Plan:
    """At most one step each for the job hooks, the CPUs, nvidia-persistenced, what runs on GPUs, ECC and MIG."""
    seen: DvfsSeen = snapshot.seen[FEATURE]
    steps: List[Step] = []
    findings: List[Finding] = []
    if want.jobs is not None:
        files = Step(f"{FEATURE} jobs", tuple(_files(seen, want.jobs)))
        steps += [files] if files.changes else []
    if want.cpu is not None:
        cpu_steps, findings = cpu_plan.plan(snapshot, want.cpu)
        steps += cpu_steps
    if isinstance(seen.gpus, dict) and any(want.policies[gpu.policy].persistence for gpu in want.gpus):
        daemon = gpu_plan.persistenced(seen)
        steps += [daemon] if daemon is not None else []
    parts = gpu_plan.plan(snapshot, want)
    return Plan(tuple(steps + parts.steps()), tuple(parts.pending), tuple(findings + parts.findings), parts.skipped)


def _files(seen: DvfsSeen, want: JobsWant) -> Iterator[Change]:
    wanted = {path: sha256(hooks.content(path)) for path in hooks.paths(want)}
    for path, desired in {**wanted, **dict(hooks.LINKS)}.items():
        if seen.files[path] != desired:
            yield Change((path,), seen.files[path], desired, "dvfs.jobs", Where.PERSISTED)
