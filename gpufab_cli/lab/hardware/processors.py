"""What the cpufreq and cpuidle drivers do when a file of theirs is written (kernel: intel_pstate.c, amd-pstate.c,
acpi-cpufreq.c, cpufreq.c, cpuidle/sysfs.c, base/power/sysfs.c). Files are named below /sys/devices/system/cpu."""

import errno
from collections.abc import Iterator

from gpufab_cli.lab.hardware.gpu_state import CpuState
from gpufab_cli.lab.hardware.model import Hardware, fail

_DRIVERS = {
    ("intel_pstate", "active"): "intel_pstate",
    ("intel_pstate", "passive"): "intel_cpufreq",
    ("amd_pstate", "active"): "amd-pstate-epp",
    ("amd_pstate", "passive"): "amd-pstate",
    ("amd_pstate", "guided"): "amd-pstate",
    ("acpi", ""): "acpi-cpufreq",
}
_MODES = {"intel_pstate": ("active", "passive"), "amd_pstate": ("active", "passive", "guided")}
_ACTIVE_GOVERNORS = ("performance", "powersave")
_GOVERNORS = ("conservative", "ondemand", "userspace", "powersave", "performance", "schedutil")
EPPS = ("default", "performance", "balance_performance", "balance_power", "power")
_EPP_MAX = 255
KHZ = 1000


def mode(hw: Hardware) -> str:
    """The mode that the driver is in."""
    return hw.state.cpu.mode or hw.machine.cpu.mode


def active(hw: Hardware) -> bool:
    """Whether the hardware chooses frequencies itself, guided by EPP."""
    return mode(hw) == "active"


def driver(hw: Hardware) -> str:
    """The driver's name."""
    return _DRIVERS[hw.machine.cpu.driver, mode(hw)]


def governors(hw: Hardware) -> tuple[str, ...]:
    """The governors there are."""
    return _ACTIVE_GOVERNORS if active(hw) else _GOVERNORS


def _value(hw: Hardware, path: str, default: str) -> str:
    return hw.state.cpu.values.get(path, default)


def _set(hw: Hardware, path: str, value: str) -> None:
    hw.edit(lambda: hw.state.cpu.values.update({path: value}))


def governor(hw: Hardware, policy: int) -> str:
    """A policy's governor."""
    return _value(hw, f"policy{policy}/governor", "powersave" if active(hw) else "schedutil")


def set_governor(hw: Hardware, policy: int, text: str) -> None:
    """Sets it; only one that there is."""
    if text.strip() not in governors(hw):
        raise fail(errno.EINVAL)
    _set(hw, f"policy{policy}/governor", text.strip())


def epp(hw: Hardware, policy: int) -> str:
    """A policy's energy performance preference. The governor performance overrides what was set."""
    if governor(hw, policy) == "performance":
        return "performance"
    return _value(hw, f"policy{policy}/epp", "balance_performance")


def set_epp(hw: Hardware, policy: int, text: str) -> None:
    """Sets it; under the governor performance any other is refused with EBUSY."""
    value = text.strip()
    number = int(value) if value.isdigit() else None
    if value not in EPPS and (number is None or number > _EPP_MAX):
        raise fail(errno.EINVAL)
    if governor(hw, policy) == "performance" and value != "performance" and number != 0:
        raise fail(errno.EBUSY)
    _set(hw, f"policy{policy}/epp", "balance_performance" if value == "default" else value)


def hardware_range(hw: Hardware) -> tuple[int, int]:
    """The lowest and highest frequency in kHz. Without boost the nominal one is the highest."""
    cpu = hw.machine.cpu
    return cpu.min_mhz * KHZ, (cpu.max_mhz if hw.state.cpu.boost else cpu.base_mhz) * KHZ


def limits(hw: Hardware, policy: int) -> tuple[int, int]:
    """A policy's range in kHz: what was asked for, clamped to what there is, the lowest to the highest."""
    low, high = hardware_range(hw)
    top = min(max(int(_value(hw, f"policy{policy}/max", str(high))), low), high)
    bottom = min(max(int(_value(hw, f"policy{policy}/min", str(low))), low), high)
    return min(bottom, top), top


def set_limit(hw: Hardware, policy: int, which: str, text: str) -> None:
    """Asks for a limit; what lies beyond the range is clamped without a word."""
    if not text.strip().isdigit():
        raise fail(errno.EINVAL)
    _set(hw, f"policy{policy}/{which}", text.strip())


def set_boost(hw: Hardware, text: str, on: str) -> None:
    """Turns boost on, where the file reads ``on``, or off."""
    if text.strip() not in ("0", "1"):
        raise fail(errno.EINVAL)
    hw.edit(lambda: setattr(hw.state.cpu, "boost", text.strip() == on))


def set_mode(hw: Hardware, text: str) -> None:
    """Switches the driver's mode, which forgets all settings and brings other files."""
    if text.strip() not in _MODES[hw.machine.cpu.driver]:
        raise fail(errno.EINVAL)
    if text.strip() != mode(hw):
        hw.edit(lambda: setattr(hw.state, "cpu", CpuState(mode=text.strip(), boost=hw.state.cpu.boost)))
        hw.restructure()


def latency(hw: Hardware, cpu: int) -> str:
    """The limit of the exit latency: 0 is none, n/a no latency at all."""
    return _value(hw, f"cpu{cpu}/latency", "0")


def set_latency(hw: Hardware, cpu: int, text: str) -> None:
    """Sets it in microseconds."""
    value = text.strip()
    if value != "n/a" and not value.isdigit():
        raise fail(errno.EINVAL)
    _set(hw, f"cpu{cpu}/latency", value if value == "n/a" else str(int(value)))


def disabled(hw: Hardware, cpu: int, state: int) -> str:
    """Whether an idle state may not be entered: 1."""
    return _value(hw, f"cpu{cpu}/state{state}", "0")


def set_disabled(hw: Hardware, cpu: int, state: int, text: str) -> None:
    """Forbids an idle state, or allows it."""
    if not text.strip().isdigit():
        raise fail(errno.EINVAL)
    _set(hw, f"cpu{cpu}/state{state}", str(int(int(text.strip()) > 0)))


def overwrite(hw: Hardware, cpus: Iterator[int], governor: str) -> None:
    """Another program sets the governor of all CPUs."""
    values = {f"policy{cpu}/governor": governor for cpu in cpus}
    hw.edit(lambda: hw.state.cpu.values.update(values))
