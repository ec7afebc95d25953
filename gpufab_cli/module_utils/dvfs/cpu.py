"""CPU frequency, boost and idle states in sysfs: read for all CPUs at once, written CPU by CPU.

Kernel documentation: admin-guide/pm/{cpufreq,intel_pstate,amd-pstate,cpuidle}.rst, ABI/testing/sysfs-devices-power
(pm_qos_resume_latency_us: 0 is no limit, "n/a" no latency at all).
"""

import re
from dataclasses import replace
from typing import Dict, Iterable, List, Tuple, Union

from ..change import ABSENT, Absent, Unknown
from ..host import Host, Reader
from ..texts import natural
from .seen import CpuSeen, Spread, cpu_numbers, spread
from .want import CpuWant

CPU = "/sys/devices/system/cpu"
CPUFREQ = f"{CPU}/cpufreq"
STATUS = (f"{CPU}/intel_pstate/status", f"{CPU}/amd_pstate/status")
NO_TURBO = f"{CPU}/intel_pstate/no_turbo"
BOOST = f"{CPUFREQ}/boost"
TUNED_PROFILE = "/etc/tuned/active_profile"
ANY = "any"
"""No limit of the exit latency."""

Text = Union[str, Absent, Unknown]
Values = Union[Spread, Absent, Unknown]


def read(host: Reader, wish: CpuWant) -> CpuSeen:
    """The CPUs, as far as the wish is about them: a node has hundreds, and a file each for each setting."""
    policies = _numbered(host, CPUFREQ, "policy")

    def of(name: str, *wanted: object) -> Values:
        asked = any(value is not None for value in wanted)
        return _policies(host, policies, name) if asked or not policies else ABSENT

    seen = CpuSeen(
        driver=_driver(of("scaling_driver", True)),
        mode=_mode(host),
        governor=of("scaling_governor", wish.governor, wish.epp),
        governors=_offered(of("scaling_available_governors", wish.governor)),
        epp=of("energy_performance_preference", wish.epp),
        epps=_offered(of("energy_performance_available_preferences", wish.epp)),
        min_khz=of("scaling_min_freq", wish.min_mhz),
        max_khz=of("scaling_max_freq", wish.max_mhz),
        range_khz=_range(
            of("cpuinfo_min_freq", wish.min_mhz, wish.max_mhz), of("cpuinfo_max_freq", wish.min_mhz, wish.max_mhz)
        ),
        boost=_boost(host),
        tuned_profile=host.read(TUNED_PROFILE),
    )
    return seen if wish.max_cstate_us is None else _with_idle(host, seen)


def _with_idle(host: Reader, seen: CpuSeen) -> CpuSeen:
    """The limit of each CPU where the kernel takes one, else the states that each may enter."""
    if not host.exists(f"{CPU}/cpu0/cpuidle/state0"):
        return seen
    cpus = _numbered(host, CPU, "cpu")
    latency = _latency(host, cpus)
    if latency is not ABSENT:
        return replace(seen, latency_us=latency)
    states, latencies = _states(host, cpus)
    return replace(seen, idle_states=states, state_latency_us=latencies)


def _numbered(host: Reader, folder: str, prefix: str) -> Tuple[int, ...]:
    names = host.names(folder)
    found = (re.fullmatch(rf"{prefix}(\d+)", name) for name in (names if isinstance(names, tuple) else ()))
    return tuple(sorted(int(match[1]) for match in found if match))


def _policies(host: Reader, policies: Iterable[int], name: str) -> Values:
    return _gather({number: host.read(f"{CPUFREQ}/policy{number}/{name}") for number in policies}, name)


def _gather(values: Dict[int, Text], name: str) -> Values:
    """One spread of many readings; ABSENT when no CPU has such a file, Unknown unless all could be read."""
    known = {number: value.strip() for number, value in values.items() if isinstance(value, str)}
    if len(known) == len(values):
        return spread(known) if known else ABSENT
    unknown = next((value for value in values.values() if isinstance(value, Unknown)), None)
    if unknown is not None:
        return unknown
    return Unknown(f"only some CPUs have {name}") if known else ABSENT


def _driver(found: Values) -> Text:
    if not isinstance(found, tuple):
        return found
    return " and ".join(value for value, _ in found)


def _mode(host: Reader) -> Text:
    found = [host.read(path) for path in STATUS]
    return next((value for value in found if value is not ABSENT), ABSENT)


def _offered(found: Values) -> Tuple[str, ...]:
    """The words that every CPU offers, in the order of the first."""
    lists = [value.split() for value, _ in found] if isinstance(found, tuple) else []
    return tuple(word for word in lists[0] if all(word in words for words in lists)) if lists else ()


def _range(lows: Values, highs: Values) -> Union[Tuple[int, int], Absent, Unknown]:
    if not isinstance(lows, tuple) or not isinstance(highs, tuple):
        return lows if not isinstance(lows, tuple) else ABSENT if isinstance(highs, tuple) else highs
    try:
        return max(int(value) for value, _ in lows), min(int(value) for value, _ in highs)
    except ValueError:
        return Unknown("cpuinfo_min_freq or cpuinfo_max_freq is not a number")


def _boost(host: Reader) -> Union[bool, Absent, Unknown]:
    """Whether boost is on; the file of intel_pstate says the opposite."""
    for path, on in ((NO_TURBO, "0"), (BOOST, "1")):
        value = host.read(path)
        if isinstance(value, Unknown):
            return value
        if value is not ABSENT:
            return value == on if value in ("0", "1") else Unknown(f"{path}: {value!r} is neither 0 nor 1")
    return ABSENT


def latency_path(cpu: int) -> str:
    """The PM QoS limit of one CPU."""
    return f"{CPU}/cpu{cpu}/power/pm_qos_resume_latency_us"


def _latency(host: Reader, cpus: Iterable[int]) -> Values:
    words = {"0": ANY, "n/a": "0"}
    found = {cpu: host.read(latency_path(cpu)) for cpu in cpus}
    return _gather(
        {cpu: words.get(text, text) if isinstance(text, str) else text for cpu, text in found.items()},
        "pm_qos_resume_latency_us",
    )


def _states(host: Reader, cpus: Iterable[int]) -> Tuple[Values, Tuple[Tuple[str, int], ...]]:
    """The idle states that each CPU may enter, by name, and the exit latency of each state."""
    enabled: Dict[int, Text] = {}
    latencies: Dict[str, int] = {}
    for cpu in cpus:
        names: List[str] = []
        for state in _numbered(host, f"{CPU}/cpu{cpu}/cpuidle", "state"):
            name, latency, disable = (host.read(f"{CPU}/cpu{cpu}/cpuidle/state{state}/{f}") for f in _STATE)
            number = natural(latency)
            if not isinstance(name, str) or number is None or disable not in ("0", "1"):
                return Unknown(f"cpu{cpu}: state{state} cannot be read"), ()
            latencies[name] = number
            names += [name] if disable == "0" else []
        enabled[cpu] = " ".join(names)
    return _gather(enabled, "cpuidle"), tuple(latencies.items())


_STATE = ("name", "latency", "disable")


def set_policies(host: Host, name: str, values: Spread) -> None:
    """Write a file of the policies that do not have the value yet: under some governors a rewrite is refused."""
    for value, numbers in values:
        for number in cpu_numbers(numbers):
            path = f"{CPUFREQ}/policy{number}/{name}"
            if host.read(path) != value:
                host.set(path, value)


def set_limits(host: Host, lows: Spread, highs: Spread) -> None:
    """Move the range of each policy so that the lowest never passes the highest: the kernel would refuse or clamp."""
    high = {number: value for value, numbers in highs for number in cpu_numbers(numbers)}
    low = {number: value for value, numbers in lows for number in cpu_numbers(numbers)}
    for number in sorted({*low, *high}):
        files = {"scaling_min_freq": low.get(number), "scaling_max_freq": high.get(number)}
        now = natural(host.read(f"{CPUFREQ}/policy{number}/scaling_max_freq"))
        rises = number in low and now is not None and int(low[number]) > now
        for name in sorted(files, reverse=not rises):
            value = files[name]
            if value is not None:
                host.set(f"{CPUFREQ}/policy{number}/{name}", value)


def set_boost(host: Host, on: bool) -> None:
    """Turn boost on or off."""
    intel = host.exists(NO_TURBO)
    host.set(NO_TURBO if intel else BOOST, str(int(on != intel)))


def set_latency(host: Host, values: Spread) -> None:
    """Limit the exit latency of idle states by PM QoS."""
    for value, cpus in values:
        text = {ANY: "0", "0": "n/a"}.get(value, value)
        for cpu in cpu_numbers(cpus):
            host.set(latency_path(cpu), text)


def set_states(host: Host, values: Spread) -> None:
    """Allow exactly the named idle states."""
    for value, cpus in values:
        allowed = value.split()
        for cpu in cpu_numbers(cpus):
            for state in _numbered(host, f"{CPU}/cpu{cpu}/cpuidle", "state"):
                folder = f"{CPU}/cpu{cpu}/cpuidle/state{state}"
                host.set(f"{folder}/disable", str(int(host.read(f"{folder}/name") not in allowed)))
