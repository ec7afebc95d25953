"""What is found of the clocks and power of one node."""

from dataclasses import dataclass, field
from typing import Any, Dict, List, Mapping, Optional, Tuple, Union

from ..change import ABSENT, Absent, Unknown

Flag = Union[bool, Absent, Unknown]
"""ABSENT: this GPU does not have it."""
Watts = Union[float, Absent, Unknown]
Clock = Union[int, Absent, Unknown]
Clocks = Union[Tuple[int, ...], Absent, Unknown]
Spread = Tuple[Tuple[str, str], ...]
"""Each value that is found, with the CPUs that have it as the kernel lists them: (("performance", "0-7"),)."""


@dataclass(frozen=True)
class GpuSeen:
    """One GPU as its driver shows it. ABSENT: the driver says that it has no such thing ([N/A], NOT_SUPPORTED)."""

    name: Union[str, Unknown]
    persistence: Flag
    power_limit_w: Watts
    power_enforced_w: Watts
    power_default_w: Watts
    power_min_w: Watts
    power_max_w: Watts
    graphics_now_mhz: Clock
    ecc: Flag
    ecc_pending: Flag
    mig: Flag
    mig_pending: Flag
    throttle: Union[int, Absent, Unknown]
    """Why the clocks are not higher: nvmlClocksEventReasons, a bit each."""
    memory_clocks_mhz: Clocks = ABSENT
    """The memory clocks that can be locked; looked at only where clocks are wanted."""
    graphics_clocks_mhz: Clocks = ABSENT
    """The graphics clocks that can be locked."""
    load: Union[int, Absent, Unknown] = ABSENT
    """Which binding of the driver to this GPU it is: a number never used twice while the system runs."""


@dataclass(frozen=True)
class Service:
    """A systemd unit: ``active`` as systemd prints it; ``starting``: it is, or is about to be, started."""

    loaded: bool
    active: str
    starting: bool
    enabled: str


@dataclass(frozen=True)
class CpuSeen:
    """All CPUs. ABSENT: the driver offers no such thing."""

    driver: Union[str, Absent, Unknown] = ABSENT
    mode: Union[str, Absent, Unknown] = ABSENT
    """active, passive or guided, for the drivers that have modes."""
    governor: Union[Spread, Absent, Unknown] = ABSENT
    governors: Tuple[str, ...] = ()
    """Those that every CPU offers."""
    epp: Union[Spread, Absent, Unknown] = ABSENT
    epps: Tuple[str, ...] = ()
    min_khz: Union[Spread, Absent, Unknown] = ABSENT
    max_khz: Union[Spread, Absent, Unknown] = ABSENT
    range_khz: Union[Tuple[int, int], Absent, Unknown] = ABSENT
    """What every CPU can be set to."""
    boost: Flag = ABSENT
    latency_us: Union[Spread, Absent, Unknown] = ABSENT
    """The PM QoS limit of each CPU; "any" is none."""
    idle_states: Union[Spread, Absent, Unknown] = ABSENT
    """The idle states that each CPU may enter, where the kernel has no such limit."""
    state_latency_us: Tuple[Tuple[str, int], ...] = ()
    tuned_profile: Union[str, Absent, Unknown] = ABSENT


@dataclass(frozen=True)
class JobSeen:
    """A job that has its own clocks: what it asked for, and on which GPUs."""

    job: str
    gpus: Tuple[str, ...]
    power_limit_w: Optional[int] = None
    graphics_mhz: Optional[Tuple[int, int]] = None


@dataclass(frozen=True)
class DvfsSeen:
    """The wanted GPUs by PCI address (``lost``: what the driver says of those it does not reach), CPUs, and writers."""

    gpus: Union[Dict[str, GpuSeen], Unknown] = field(default_factory=dict)
    lost: Dict[str, str] = field(default_factory=dict)
    cpu: CpuSeen = CpuSeen()
    services: Union[Dict[str, Service], Unknown] = field(default_factory=dict)
    writers: Tuple[str, ...] = ()
    """Programs that run and are known to set clocks or power, in words."""
    files: Dict[str, Union[str, Absent, Unknown]] = field(default_factory=dict)
    jobs: Tuple[JobSeen, ...] = ()


def cpu_list(numbers: Any) -> str:
    """Numbers as the kernel lists CPUs: 0-3,8."""
    ranges: List[List[int]] = []
    for number in sorted(numbers):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return ",".join(f"{low}-{high}" if high > low else str(low) for low, high in ranges)


def cpu_numbers(text: str) -> Tuple[int, ...]:
    """The numbers of such a list.

    Raises:
        ValueError: it is none.
    """
    found: List[int] = []
    for part in text.split(",") if text else ():
        low, _, high = part.partition("-")
        found += range(int(low), int(high or low) + 1)
    return tuple(found)


def spread(values: Mapping[int, str]) -> Spread:
    """The values of many CPUs, equal ones together."""
    groups: Dict[str, List[int]] = {}
    for number, value in values.items():
        groups.setdefault(value, []).append(number)
    return tuple((value, cpu_list(numbers)) for value, numbers in sorted(groups.items()))


def everywhere(value: str, found: Spread) -> Spread:
    """The one value on all the CPUs of a spread."""
    return ((value, cpu_list(number for _, cpus in found for number in cpu_numbers(cpus))),)
