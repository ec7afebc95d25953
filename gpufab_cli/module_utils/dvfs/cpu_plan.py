"""Decide what would change on the CPUs of a node. Pure."""

from typing import Any, Dict, Iterator, List, Optional, Tuple

from ..change import ABSENT, Change, Finding, Step, Unknown
from ..snapshot import Snapshot
from . import services
from .gpu_plan import FEATURE, changed_again
from .seen import CpuSeen, DvfsSeen, Service, Spread, everywhere
from .want import CpuWant

KHZ = 1000
CODES = {
    "boost": "dvfs.cpu-boost",
    "governor": "dvfs.cpu-governor",
    "epp": "dvfs.cpu-epp",
    "min_khz": "dvfs.cpu-frequency",
    "max_khz": "dvfs.cpu-frequency",
    "latency_us": "dvfs.cpu-idle",
    "idle_states": "dvfs.cpu-idle",
    "tuned_profile": "dvfs.cpu-tuned",
}
"""Every setting, in the order in which they are made: boost moves the range, the governor decides about EPP."""
FREQUENCY = ("boost", "governor", "epp", "min_khz", "max_khz")

# With these drivers in active mode the governor performance holds EPP at performance and refuses any other with EBUSY
# (intel_pstate.c store_energy_performance_preference, amd-pstate.c store_energy_performance_preference).
ACTIVE_DRIVERS = frozenset({"intel_pstate", "amd-pstate-epp", "amd_pstate_epp"})
PERFORMANCE = "performance"


def plan(snapshot: Snapshot, wish: CpuWant) -> Tuple[List[Step], List[Finding]]:
    """One step for all CPUs, and what the kernel here cannot do."""
    seen: DvfsSeen = snapshot.seen[FEATURE]
    refused = _refused(seen, wish)
    findings = [*dict.fromkeys(refused.values()), *_others(seen, wish)]
    undecided = _undecided(seen, wish)
    changes: List[Change] = []
    for name, desired in _wanted(seen.cpu, wish).items():
        current = getattr(seen.cpu, name)
        if name in refused or current == desired:
            continue
        found = current if undecided is None else undecided
        changes.append(Change(("cpu", name), found, desired, CODES[name]))
        findings += changed_again(snapshot, ("cpu", name), current, desired)
    step = Step(f"{FEATURE} cpu", tuple(changes), blocked=_owner(seen, wish))
    return ([step] if changes else []), findings


def _wanted(cpu: CpuSeen, wish: CpuWant) -> Dict[str, Any]:
    """Every setting that is wanted, as it must be found."""
    words: Dict[str, Optional[str]] = {
        "governor": wish.governor,
        "epp": wish.epp,
        "min_khz": None if wish.min_mhz is None else str(wish.min_mhz * KHZ),
        "max_khz": None if wish.max_mhz is None else str(wish.max_mhz * KHZ),
        **_idle(cpu, wish.max_cstate_us),
    }
    wanted: Dict[str, Any] = {
        name: _everywhere(value, getattr(cpu, name)) for name, value in words.items() if value is not None
    }
    wanted["boost"], wanted["tuned_profile"] = wish.boost, wish.tuned_profile
    return {name: wanted[name] for name in CODES if wanted.get(name) is not None}


def _everywhere(value: str, found: Any) -> Spread:
    return everywhere(value, found) if isinstance(found, tuple) else ((value, ""),)


def _idle(cpu: CpuSeen, limit: Optional[int]) -> Dict[str, Optional[str]]:
    """The limit itself where the kernel takes one, else the states that keep to it."""
    if limit is None:
        return {}
    if cpu.latency_us is not ABSENT:
        return {"latency_us": str(limit)}
    return {"idle_states": " ".join(name for name, latency in cpu.state_latency_us if latency <= limit)}


def _refused(seen: DvfsSeen, wish: CpuWant) -> Dict[str, Finding]:
    """The wishes that these CPUs cannot fulfil, with what they offer."""
    cpu, found = seen.cpu, {}
    wanted = _wanted(cpu, wish)
    if cpu.driver is ABSENT and any(name in wanted for name in FREQUENCY):
        words = "there is no cpufreq driver: the firmware or the hypervisor controls frequencies"
        found = dict.fromkeys(FREQUENCY, Finding("dvfs.cpu-not-controllable", ("cpu",), words))
        wanted = {name: value for name, value in wanted.items() if name not in FREQUENCY}
    for name in wanted:
        words = _why_not(name, cpu, wish)
        if words:
            found[name] = Finding("dvfs.cpu-refused", ("cpu", name), words)
    if wish.tuned_profile is not None and isinstance(seen.services, dict):
        words = _tuned_inactive(seen.services.get(services.TUNED))
        if words:
            found["tuned_profile"] = Finding("dvfs.tuned-inactive", ("cpu", "tuned_profile"), words)
    return found


def _tuned_inactive(service: Optional[Service]) -> str:
    if service is not None and service.active == "active":
        return ""
    return f"{services.TUNED} is {service.active if service is not None and service.loaded else 'not installed'}"


def _why_not(name: str, cpu: CpuSeen, wish: CpuWant) -> str:
    """Why a wish cannot be fulfilled; "" when it can."""
    if name == "tuned_profile":
        return ""
    if getattr(cpu, name) is ABSENT:
        mode = f" in mode {cpu.mode}" if isinstance(cpu.mode, str) else ""
        what = f"the driver {cpu.driver}{mode}" if name in FREQUENCY else "the kernel"
        return f"{what} offers no control of {name}"
    if name == "governor" and cpu.governors and wish.governor not in cpu.governors:
        return f"{wish.governor} is not offered by {cpu.driver}, these are: {', '.join(cpu.governors)}"
    if name == "epp":
        return _why_not_epp(cpu, wish)
    if name in ("min_khz", "max_khz"):
        return _why_not_range(cpu, wish, name)
    return ""


def _why_not_epp(cpu: CpuSeen, wish: CpuWant) -> str:
    epp = str(wish.epp)
    if cpu.epps and epp not in cpu.epps and not epp.isdigit():
        return f"{epp} is not offered, these are: {', '.join(cpu.epps)}"
    now = {value for value, _ in cpu.governor} if isinstance(cpu.governor, tuple) else set()
    governors = {wish.governor} if wish.governor else now
    if cpu.driver in ACTIVE_DRIVERS and PERFORMANCE in governors and epp != PERFORMANCE:
        return f"under the governor performance {cpu.driver} refuses any EPP but performance (EBUSY): set powersave"
    return ""


def _why_not_range(cpu: CpuSeen, wish: CpuWant, name: str) -> str:
    """The kernel clamps what lies outside the CPUs' range. Boost that is about to change moves the upper end."""
    if not isinstance(cpu.range_khz, tuple):
        return ""
    low, high = cpu.range_khz
    mhz = wish.min_mhz if name == "min_khz" else wish.max_mhz
    moves = wish.boost is not None and wish.boost != cpu.boost
    if mhz is None or (low <= mhz * KHZ and (mhz * KHZ <= high or moves)):
        return ""
    return f"{mhz} MHz is not within {-(-low // KHZ)}..{high // KHZ} MHz"


def _undecided(seen: DvfsSeen, wish: CpuWant) -> Optional[Unknown]:
    """Why nobody can tell whether these values are gpufab's to set, if that is so."""
    found = seen.services
    if not isinstance(found, Unknown) or (wish.takeover and wish.tuned_profile is None):
        return None
    return Unknown(f"cannot tell whether tuned or power-profiles-daemon runs: {found.reason}")


def _owner(seen: DvfsSeen, wish: CpuWant) -> str:
    """Who sets these values whenever it sees fit, so that setting them once is no use."""
    found = seen.services
    if wish.takeover or wish.tuned_profile is not None or isinstance(found, Unknown):
        return ""
    active = [unit for unit in services.CPU_OWNERS if unit in found and found[unit].active == "active"]
    return f"{' and '.join(active)} sets the CPUs' governor and EPP" if active else ""


def _others(seen: DvfsSeen, wish: CpuWant) -> Iterator[Finding]:
    """Services that set the same values, whether or not something differs now."""
    undecided = _undecided(seen, wish)
    if undecided is not None:
        code = "dvfs.cpu-owner" if wish.tuned_profile is None else "dvfs.tuned-inactive"
        yield Finding(code, ("cpu",), undecided.reason, unknown=True)
    if isinstance(seen.services, Unknown):
        return
    for unit in (*services.CPU_OWNERS, services.CPUPOWER):
        service = seen.services.get(unit)
        own = unit == services.TUNED and wish.tuned_profile is not None
        starts = service is not None and (service.active == "active" or service.enabled == "enabled")
        if starts and not own:
            yield Finding("dvfs.cpu-owner", (unit,), "sets the CPUs' frequencies when it starts, or is enabled to")
