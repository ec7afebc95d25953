"""Clocks and power: what was declared is what the GPUs and CPUs have."""

from collections.abc import Callable
from typing import Any

import pytest

from gpufab_cli.verify import power
from gpufab_cli.verify.compare import compare, settled
from gpufab_cli.verify.expected import Node
from gpufab_cli.verify.power import GpuReading
from gpufab_cli.verify.reading import Reading, UnreadableError, number, told

WATT = 1.0
KHZ = 1000
NO_LATENCY = "n/a"


def _each_gpu(node: Node, reading: Reading, name: str, check: Callable[[GpuReading, Any], str]) -> None:
    """Check what is wanted of each GPU; the first that is not so fails the test, by its address."""
    wanted = power.wanted(node.wishes["dvfs"], name)
    found = power.gpus(reading.section("gpus").require("nvidia-smi -q -x"))
    for pci, value in wanted.items():
        compare(pci in found, f"nvidia-smi does not know {pci}")
        said = check(found[pci], value)
        compare(not said, f"{pci}: {said}")


def _known(value: Any, what: str) -> Any:
    if value is None:
        raise UnreadableError(f"nvidia-smi does not tell {what}")
    return value


@pytest.mark.wishes("dvfs", "gpus")
@pytest.mark.of_gpus("persistence")
def test_persistence(node: Node, reading: Reading) -> None:
    """The driver keeps GPUs initialised as declared."""

    def check(gpu: GpuReading, wanted: bool) -> str:
        on = _known(gpu.persistence, "persistence mode")
        return "" if on == wanted else f"persistence mode is {'on' if on else 'off'}"

    _each_gpu(node, reading, "persistence", check)


@pytest.mark.wishes("dvfs", "gpus")
@pytest.mark.of_gpus("power_limit_w")
def test_power_limit(node: Node, reading: Reading) -> None:
    """The power limits are as declared."""

    def check(gpu: GpuReading, wanted: int) -> str:
        watts = _known(gpu.power_limit_w, "the power limit")
        return "" if abs(watts - wanted) < WATT else f"limited to {watts:g} W, wanted {wanted} W"

    _each_gpu(node, reading, "power_limit_w", check)


@pytest.mark.wishes("dvfs", "gpus")
@pytest.mark.of_gpus("graphics_mhz")
def test_graphics_clock(node: Node, reading: Reading) -> None:
    """No GPU runs above what is locked; below it may be idle or hot. More no driver tells."""

    def check(gpu: GpuReading, wanted: list[int]) -> str:
        if not wanted:
            settled("it is to be unlocked, of which no driver tells")
            return ""
        clock = _known(gpu.graphics_mhz, "the graphics clock")
        return f"runs at {clock:g} MHz, locked to {wanted[-1]} MHz" if clock > wanted[-1] else ""

    _each_gpu(node, reading, "graphics_mhz", check)


@pytest.mark.wishes("dvfs", "gpus")
@pytest.mark.of_gpus("ecc", "mig")
def test_gpu_modes(node: Node, reading: Reading) -> None:
    """ECC and MIG run as declared."""
    for name in ("ecc", "mig"):

        def check(gpu: GpuReading, wanted: bool, name: str = name) -> str:
            on = _known(getattr(gpu, name), name.upper())
            return "" if on == wanted else f"{name.upper()} is {'on' if on else 'off'}"

        _each_gpu(node, reading, name, check)


def _every_cpu(reading: Reading, name: str, wanted: str, what: str) -> None:
    """All CPUs have the one value."""
    values = reading.section(f"cpu/{name}").words(what).split("\n")
    other = [value.strip() for value in values if value.strip() != wanted]
    compare(not other, f"{what} is {', '.join(other)} on some CPUs, wanted {wanted}")


@pytest.mark.wishes("dvfs", "cpu", "governor")
def test_governor(node: Node, reading: Reading) -> None:
    """Every CPU has the governor."""
    _every_cpu(reading, "scaling_governor", node.wishes["dvfs"]["cpu"]["governor"], "governor")


@pytest.mark.wishes("dvfs", "cpu", "epp")
def test_epp(node: Node, reading: Reading) -> None:
    """Every CPU has the energy performance preference."""
    _every_cpu(reading, "energy_performance_preference", node.wishes["dvfs"]["cpu"]["epp"], "EPP")


@pytest.mark.wishes("dvfs", "cpu", "min_mhz")
def test_lowest_frequency(node: Node, reading: Reading) -> None:
    """Every CPU has the lowest frequency."""
    _every_cpu(reading, "scaling_min_freq", str(node.wishes["dvfs"]["cpu"]["min_mhz"] * KHZ), "lowest frequency")


@pytest.mark.wishes("dvfs", "cpu", "max_mhz")
def test_highest_frequency(node: Node, reading: Reading) -> None:
    """Every CPU has the highest frequency."""
    _every_cpu(reading, "scaling_max_freq", str(node.wishes["dvfs"]["cpu"]["max_mhz"] * KHZ), "highest frequency")


@pytest.mark.wishes("dvfs", "cpu", "boost")
def test_boost(node: Node, reading: Reading) -> None:
    """Boost is as declared; intel_pstate's file says the opposite."""
    wanted = node.wishes["dvfs"]["cpu"]["boost"]
    intel = reading.section("cpu/no_turbo")
    section, name = (intel, "no_turbo") if intel.there else (reading.section("cpu/boost"), "cpufreq/boost")
    flag = section.words(name)
    if flag not in ("0", "1"):
        raise UnreadableError(f"{name}: {flag} is neither 0 nor 1")
    on = flag == ("0" if section is intel else "1")
    compare(on == wanted, f"boost is {'on' if on else 'off'}")


@pytest.mark.wishes("dvfs", "cpu", "max_cstate_us")
def test_idle_latency(node: Node, reading: Reading) -> None:
    """No CPU may enter an idle state that takes longer to leave, by its limit or state by state."""
    limit = node.wishes["dvfs"]["cpu"]["max_cstate_us"]
    if reading.section("cpu/pm_qos_resume_latency_us").there:
        _every_cpu(reading, "pm_qos_resume_latency_us", str(limit) if limit else NO_LATENCY, "idle latency limit")
        return
    states = reading.section("cpu/idle").fields("cpuidle", 3)
    compare(bool(states), "no CPU shows its idle states")
    for name, latency, disabled in states:
        microseconds = number(latency, f"latency of {told(name, 'an idle state')}")
        forbidden = number(disabled, f"whether {name} is forbidden") > 0
        compare(forbidden or microseconds <= limit, f"{name}, {latency} µs to leave, is allowed")


@pytest.mark.wishes("dvfs", "cpu", "tuned_profile")
def test_tuned_profile(node: Node, reading: Reading) -> None:
    """tuned has the profile active."""
    found = reading.section("tuned").require("/etc/tuned/active_profile").strip()
    compare(found == node.wishes["dvfs"]["cpu"]["tuned_profile"], f"tuned has {found or 'no profile'} active")
