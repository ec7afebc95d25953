"""Decide what would change on the GPUs of a node. Pure."""

from dataclasses import dataclass, field
from typing import Any, Dict, FrozenSet, Iterator, List, Optional, Tuple

from .. import record
from ..change import ABSENT, Absent, Change, Finding, Impact, Path, Pending, Step, Unknown, Where
from ..devices import Devices
from ..snapshot import Snapshot
from . import services, throttle
from .jobs import effective
from .seen import DvfsSeen, GpuSeen
from .want import DvfsWant, GpuPolicy, GpuWant

FEATURE = "dvfs"
GPUS = f"{FEATURE} gpus"
"""The step of all that runs on GPUs."""
CODES = {
    "persistence": "dvfs.persistence",
    "power_limit_w": "dvfs.power-limit",
    "memory_mhz": "dvfs.clock-lock",
    "graphics_mhz": "dvfs.clock-lock",
    "ecc": "dvfs.ecc",
    "mig": "dvfs.mig",
}
RUNNING = ("persistence", "power_limit_w", "memory_mhz", "graphics_mhz")
"""In the order in which they are set: what is set without persistence is lost with the last client."""
LOCKS = ("memory_mhz", "graphics_mhz")
HALF_A_WATT = 0.5


@dataclass
class GpuParts:
    """What the plan has of GPUs."""

    changes: List[Change] = field(default_factory=list)
    ecc: List[Change] = field(default_factory=list)
    mig: List[Step] = field(default_factory=list)
    pending: List[Pending] = field(default_factory=list)
    findings: List[Finding] = field(default_factory=list)
    skipped: Dict[str, str] = field(default_factory=dict)
    """GPUs that do not answer, with the reason."""

    def steps(self) -> List[Step]:
        """One step for all that runs, as a node whose GPUs differ is slower than one of the lowest.

        A restore sets what it can all the same: one GPU that is dead leaves no other without its limits.
        """
        steps = [Step(GPUS, tuple(self.changes), apart=True), Step(f"{FEATURE} ecc", tuple(self.ecc), apart=True)]
        return [step for step in steps if step.changes] + self.mig


def plan(snapshot: Snapshot, want: DvfsWant) -> GpuParts:
    """What would change on the wanted GPUs, and what is found besides."""
    seen: DvfsSeen = snapshot.seen[FEATURE]
    parts = GpuParts()
    for gpu in want.gpus:
        policy = effective(want.policies[gpu.policy], gpu.pci, seen.jobs)
        problem = _problem(snapshot.devices, seen, want, gpu)
        if problem is not None:
            parts.findings.append(problem)
            parts.skipped[gpu.pci] = problem.evidence
        elif isinstance(seen.gpus, Unknown):
            parts.changes += _all_unknown(gpu.pci, policy, seen.gpus)
        else:
            _one(parts, snapshot, gpu.pci, policy)
    parts.findings += _of_jobs(seen)
    return parts


def _problem(devices: Devices, seen: DvfsSeen, want: DvfsWant, gpu: GpuWant) -> Optional[Finding]:
    """Why the GPU is left alone, if it is."""
    found = next((item for item in devices.gpus if item.pci == gpu.pci), None)
    if found is not None and want.device is not None and found.device != want.device:
        return Finding("dvfs.gpu-model", (gpu.pci,), f"PCI device {found.device}, the fabric wants {want.device}")
    if gpu.pci in seen.lost:
        return Finding("dvfs.gpu-lost", (gpu.pci,), seen.lost[gpu.pci])
    return None


def _all_unknown(pci: str, policy: GpuPolicy, reason: Unknown) -> Iterator[Change]:
    for name in (*RUNNING, "ecc", "mig"):
        desired = getattr(policy, name)
        if desired is not None:
            yield Change((pci, name), reason, desired, CODES[name])


def _one(parts: GpuParts, snapshot: Snapshot, pci: str, policy: GpuPolicy) -> None:
    seen: DvfsSeen = snapshot.seen[FEATURE]
    if isinstance(seen.gpus, Unknown):
        return
    gpu = seen.gpus[pci]
    refused = dict(_refused(pci, gpu, policy))
    parts.findings += refused.values()
    for name in RUNNING:
        desired = getattr(policy, name)
        if desired is None or name in refused:
            continue
        current = _current(snapshot, pci, gpu, name, desired)
        if isinstance(current, Unknown) or not _fits(current, desired):
            parts.changes.append(Change((pci, name), current, desired, CODES[name], load=load(gpu)))
            parts.findings += changed_again(snapshot, (pci, name), current, desired, load(gpu))
    _next_reset(parts, snapshot, pci, gpu, policy)
    parts.findings += [*throttle.findings(pci, gpu), *_remarks(pci, gpu, policy)]


def load(gpu: GpuSeen) -> str:
    """Which load of the driver its running values live in."""
    return str(gpu.load)


def _current(snapshot: Snapshot, pci: str, gpu: GpuSeen, name: str, desired: Any) -> Any:
    return _lock(snapshot, pci, gpu, name, desired) if name in LOCKS else getattr(gpu, name)


def _lock(snapshot: Snapshot, pci: str, gpu: GpuSeen, name: str, desired: Tuple[int, ...]) -> Any:
    """What clocks are locked. No driver tells: the record does, unless something shows that it no longer holds."""
    supported = getattr(gpu, _SUPPORTED[name])
    if desired and isinstance(supported, Unknown):
        return supported
    if isinstance(gpu.load, Unknown):
        return gpu.load
    value = record.value(snapshot.records.get(FEATURE, ABSENT), (pci, name), snapshot.boot_id, load(gpu))
    return ABSENT if desired and isinstance(value, tuple) and value and _shows_lost(gpu, name, value) else value


def _shows_lost(gpu: GpuSeen, name: str, value: Tuple[int, ...]) -> bool:
    """Whether something shows that a lock no longer holds: nothing keeps it, or the clock is above it."""
    now = gpu.graphics_now_mhz
    above = name == "graphics_mhz" and isinstance(now, int) and now > max(value)
    return gpu.persistence is False or above


_SUPPORTED = {"memory_mhz": "memory_clocks_mhz", "graphics_mhz": "graphics_clocks_mhz"}


def _fits(current: Any, desired: Any) -> bool:
    if isinstance(current, float):
        return bool(abs(current - desired) < HALF_A_WATT)
    return bool(current == desired) or (current is ABSENT and desired == ())


def _refused(pci: str, gpu: GpuSeen, policy: GpuPolicy) -> Iterator[Tuple[str, Finding]]:
    """The wishes that this GPU cannot fulfil, so that nothing is asked of the driver that it would clamp or ignore."""
    if policy.persistence is not None and gpu.persistence is ABSENT:
        yield "persistence", Finding("dvfs.unsupported", (pci, "persistence"), "the GPU has no persistence mode")
    if policy.persistence is False or (policy.persistence is None and gpu.persistence is False):
        for name in RUNNING[1:]:
            if getattr(policy, name):
                words = "persistence mode is not on: the driver would forget this with its last client"
                yield name, Finding("dvfs.needs-persistence", (pci, name), words)
        return
    if policy.power_limit_w is not None:
        yield from _power_refused(pci, gpu, policy.power_limit_w)
    for name in LOCKS:
        yield from _clocks_refused(pci, name, getattr(gpu, _SUPPORTED[name]), getattr(policy, name))


def _power_refused(pci: str, gpu: GpuSeen, watts: int) -> Iterator[Tuple[str, Finding]]:
    path = (pci, "power_limit_w")
    if ABSENT in (gpu.power_limit_w, gpu.power_min_w, gpu.power_max_w):
        yield path[1], Finding("dvfs.unsupported", path, "the GPU's power cannot be limited")
        return
    low, high = gpu.power_min_w, gpu.power_max_w
    if isinstance(low, float) and isinstance(high, float) and not low <= watts <= high:
        yield path[1], Finding("dvfs.power-range", path, f"{watts} W is not within {low:g}..{high:g} W")


def _clocks_refused(
    pci: str, name: str, supported: Any, wanted: Optional[Tuple[int, ...]]
) -> Iterator[Tuple[str, Finding]]:
    if not wanted or isinstance(supported, Unknown):
        return
    if supported is ABSENT:
        yield name, Finding("dvfs.unsupported", (pci, name), "the GPU's clocks cannot be locked")
        return
    bad = next((clock for clock in wanted if clock not in supported), None)
    if bad is not None:
        words = f"{bad} MHz is not supported, these are: {steps(supported)}"
        hint = "; it looks like a memory clock" if name == "graphics_mhz" and bad > max(supported) else ""
        yield name, Finding("dvfs.clock-range", (pci, name), words + hint)


def steps(clocks: Tuple[int, ...]) -> str:
    """Clocks in short: 210..1980 in steps of 15."""
    if len(clocks) < 4:  # noqa: PLR2004 as many as one reads at a glance
        return ", ".join(map(str, clocks))
    gaps = sorted({high - low for low, high in zip(clocks, clocks[1:])})
    return f"{clocks[0]}..{clocks[-1]} in steps of {' or '.join(map(str, gaps[:3]))}"


def _next_reset(parts: GpuParts, snapshot: Snapshot, pci: str, gpu: GpuSeen, policy: GpuPolicy) -> None:
    """ECC, and MIG before Hopper: set for the next reset of the GPU. From Hopper on MIG acts at once."""
    for name in ("ecc", "mig"):
        desired = getattr(policy, name)
        running, following = getattr(gpu, name), getattr(gpu, f"{name}_pending")
        if desired is None:
            continue
        if following is ABSENT:
            if desired:
                parts.findings.append(Finding("dvfs.unsupported", (pci, name), f"the GPU has no {name.upper()}"))
        elif following != desired:
            change = Change((pci, name), following, desired, CODES[name], Where.NEXT_BOOT, load(gpu))
            if name == "ecc":
                parts.ecc.append(change)
            else:
                parts.mig.append(Step(f"{FEATURE} mig {pci}", (change,), _mig_impact(snapshot, change), pci))
        elif running != desired:
            parts.pending.append(Pending((pci, name), running, desired, Impact.GPU_RESET, CODES[name]))


def _mig_impact(snapshot: Snapshot, change: Change) -> FrozenSet[Impact]:
    """Consent is asked for once. From Hopper on the mode is lost with the driver, and is then simply brought back;
    a GPU that somebody uses refuses it."""
    entries = snapshot.records.get(FEATURE, ABSENT)
    lost = any(
        (entry.path, entry.value) == (change.path, change.desired)
        and (entry.boot_id, entry.load) != (snapshot.boot_id, change.load)
        for entry in (entries if isinstance(entries, tuple) else ())
    )
    return frozenset() if lost else frozenset({Impact.GPU_RESET})


def changed_again(snapshot: Snapshot, path: Path, current: Any, desired: Any, alive: str = "") -> Iterator[Finding]:
    """Say that somebody else has set a value since gpufab did: it was right in this boot and load of the driver."""
    if isinstance(current, (Unknown, Absent)):
        return
    made = record.value(snapshot.records.get(FEATURE, ABSENT), path, snapshot.boot_id, alive)
    if made == desired:
        seen: DvfsSeen = snapshot.seen[FEATURE]
        by = "; ".join(seen.writers) or "no known program runs that does"
        yield Finding("dvfs.changed-again", path, f"gpufab set it since the last boot; who else sets it: {by}")


def _remarks(pci: str, gpu: GpuSeen, policy: GpuPolicy) -> Iterator[Finding]:
    if policy.reason is not None:
        yield Finding("dvfs.override", (pci,), policy.reason)
    limit, default = gpu.power_limit_w, gpu.power_default_w
    if policy.power_limit_w is None and isinstance(limit, float) and isinstance(default, float) and limit != default:
        words = f"limited to {limit:g} W, the default is {default:g} W, and the fabric does not say"
        yield Finding("dvfs.power-not-default", (pci, "power_limit_w"), words)


def _of_jobs(seen: DvfsSeen) -> Iterator[Finding]:
    for job in seen.jobs:
        clocks = f" {job.graphics_mhz[0]}-{job.graphics_mhz[1]} MHz" if job.graphics_mhz else ""
        power = f" {job.power_limit_w} W" if job.power_limit_w else ""
        yield Finding("dvfs.job", (f"job {job.job}",), f"has{clocks}{power} on {len(job.gpus)} GPUs until it ends")


def persistenced(seen: DvfsSeen) -> Optional[Step]:
    """The step that has nvidia-persistenced run, where it is installed and does not."""
    service = seen.services.get(services.PERSISTENCED) if isinstance(seen.services, dict) else None
    if service is None or not service.loaded or service.starting or service.active == "active":
        return None
    change = Change((services.PERSISTENCED,), service.active, "active", "dvfs.persistenced")
    return Step(f"{FEATURE} persistenced", (change,))
