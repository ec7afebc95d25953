"""Clocks and power: what was declared is what the GPUs and CPUs have."""

from collections.abc import Callable
from typing import Any

import pytest

from gpufab_cli.verify import power
from gpufab_cli.verify.expected import Node
from gpufab_cli.verify.power import GpuReading
from gpufab_cli.verify.reading import Reading, UnreadableError

WATT = 1.0
KHZ = 1000
NO_LATENCY = "n/a"


def _each_gpu(node: Node, reading: Reading, name: str, check: Callable[[GpuReading, Any], str]) -> None:
    """Check what is wanted of each GPU; the first that is not so fails the test, by its address."""
    wanted = power.wanted(node.wishes["dvfs"], name)
    found = power.gpus(reading.section("gpus").require("nvidia-smi -q -x"))
    for pci, value in wanted.items():
        assert pci in found, f"nvidia-smi does not know {pci}"
        said = check(found[pci], value)
        assert not said, f"{pci}: {said}"


def _known(value: Any, what: str) -> Any:
    if value is None:
        raise UnreadableError(f"nvidia-smi does not tell {what}")
    return value


@pytest.mark.wishes("dvfs", "gpus")
def test_persistence(node: Node, reading: Reading) -> None:
    """The driver keeps GPUs initialised as declared."""

    def check(gpu: GpuReading, wanted: bool) -> str:
        on = _known(gpu.persistence, "persistence mode")
        return "" if on == wanted else f"persistence mode is {'on' if on else 'off'}"

    _each_gpu(node, reading, "persistence", check)


@pytest.mark.wishes("dvfs", "gpus")
def test_power_limit(node: Node, reading: Reading) -> None:
    """The power limits are as declared."""

    def check(gpu: GpuReading, wanted: int) -> str:
        watts = _known(gpu.power_limit_w, "the power limit")
        return "" if abs(watts - wanted) < WATT else f"limited to {watts:g} W, wanted {wanted} W"

    _each_gpu(node, reading, "power_limit_w", check)


@pytest.mark.wishes("dvfs", "gpus")
def test_graphics_clock(node: Node, reading: Reading) -> None:
    """No GPU runs above what is locked; below it may be idle or hot. More no driver tells."""

    def check(gpu: GpuReading, wanted: list[int]) -> str:
        clock = _known(gpu.graphics_mhz, "the graphics clock")
        return f"runs at {clock:g} MHz, locked to {wanted[-1]} MHz" if wanted and clock > wanted[-1] else ""

    _each_gpu(node, reading, "graphics_mhz", check)


@pytest.mark.wishes("dvfs", "gpus")
def test_gpu_modes(node: Node, reading: Reading) -> None:
    """ECC and MIG run as declared."""
    for name in ("ecc", "mig"):

        def check(gpu: GpuReading, wanted: bool, name: str = name) -> str:
            on = _known(getattr(gpu, name), name.upper())
            return "" if on == wanted else f"{name.upper()} is {'on' if on else 'off'}"

        _each_gpu(node, reading, name, check)


def _every_cpu(reading: Reading, name: str, wanted: str, what: str) -> None:
    """All CPUs have the one value."""
    values = reading.section(f"cpu/{name}").require(what).split("\n")
    other = [value.strip() for value in values if value.strip() != wanted]
    assert not other, f"{what} is {', '.join(other)} on some CPUs, wanted {wanted}"


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
    text = intel.text if intel.code == "0" else reading.section("cpu/boost").require("cpufreq/boost")
    on = text.strip() == ("0" if intel.code == "0" else "1")
    assert on == wanted, f"boost is {'on' if on else 'off'}"


@pytest.mark.wishes("dvfs", "cpu", "max_cstate_us")
def test_idle_latency(node: Node, reading: Reading) -> None:
    """No CPU may enter an idle state that takes longer to leave, by its limit or state by state."""
    limit = node.wishes["dvfs"]["cpu"]["max_cstate_us"]
    section = reading.section("cpu/pm_qos_resume_latency_us")
    if section.code == "0":
        _every_cpu(reading, "pm_qos_resume_latency_us", str(limit) if limit else NO_LATENCY, "idle latency limit")
        return
    for line in reading.section("cpu/idle").require("cpuidle").splitlines():
        name, latency, disabled = line.split()
        assert disabled == "1" or int(latency) <= limit, f"{name}, {latency} µs to leave, is allowed"


@pytest.mark.wishes("dvfs", "cpu", "tuned_profile")
def test_tuned_profile(node: Node, reading: Reading) -> None:
    """tuned has the profile active."""
    found = reading.section("tuned").require("/etc/tuned/active_profile").strip()
    assert found == node.wishes["dvfs"]["cpu"]["tuned_profile"], f"tuned has {found or 'no profile'} active"
