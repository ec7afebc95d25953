"""Frequencies and idle states of CPUs: cpufreq, intel_pstate or amd_pstate, cpuidle and PM QoS."""

from collections.abc import Callable
from functools import partial

from gpufab_cli.lab.hardware import processors
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.sysfs.system import cpus
from gpufab_cli.lab.hardware.sysfs.tree import Tree

_CPU = "/devices/system/cpu"
_FREQ = f"{_CPU}/cpufreq"
_TRANSITION_NS = 20_000


def add(tree: Tree, hw: Hardware) -> None:
    """Adds all that the machine's CPUs offer."""
    every = [cpu for node in hw.machine.numa for cpu in cpus(node.cpus)]
    if hw.machine.cpu.driver:
        _switches(tree, hw)
        for cpu in every:
            base = f"{_FREQ}/policy{cpu}"
            tree.link(f"{_CPU}/cpu{cpu}/cpufreq", base)
            tree.later(base, partial(_policy, hw, cpu, base))
    if hw.machine.cpu.idle:
        _idle(tree, hw, every)


def _switches(tree: Tree, hw: Hardware) -> None:
    """What is set for all CPUs at once."""
    driver = hw.machine.cpu.driver
    if driver != "acpi":
        tree.live(f"{_CPU}/{driver}/status", partial(processors.mode, hw), partial(processors.set_mode, hw))
    path, on = (f"{_CPU}/intel_pstate/no_turbo", "0") if driver == "intel_pstate" else (f"{_FREQ}/boost", "1")
    off = {"0": "1", "1": "0"}[on]
    tree.live(path, lambda: on if hw.state.cpu.boost else off, lambda text: processors.set_boost(hw, text, on))


def _policy(hw: Hardware, cpu: int, base: str, tree: Tree) -> None:
    tree.text(f"{base}/affected_cpus", cpu)
    tree.text(f"{base}/related_cpus", cpu)
    tree.text(f"{base}/cpuinfo_transition_latency", 0 if processors.active(hw) else _TRANSITION_NS)
    tree.text(f"{base}/scaling_driver", processors.driver(hw))
    tree.text(f"{base}/scaling_available_governors", " ".join(processors.governors(hw)))
    tree.live(f"{base}/cpuinfo_min_freq", lambda: processors.hardware_range(hw)[0])
    tree.live(f"{base}/cpuinfo_max_freq", lambda: processors.hardware_range(hw)[1])
    tree.live(
        f"{base}/scaling_governor", partial(processors.governor, hw, cpu), partial(processors.set_governor, hw, cpu)
    )
    for which, name, end in (("min", "scaling_min_freq", 0), ("max", "scaling_max_freq", 1)):
        tree.live(f"{base}/{name}", _limit(hw, cpu, end), partial(processors.set_limit, hw, cpu, which))
    if processors.active(hw):
        path = f"{base}/energy_performance_preference"
        tree.live(path, partial(processors.epp, hw, cpu), partial(processors.set_epp, hw, cpu))
        tree.text(f"{base}/energy_performance_available_preferences", " ".join(processors.EPPS) + " ")


def _limit(hw: Hardware, cpu: int, end: int) -> Callable[[], int]:
    return lambda: processors.limits(hw, cpu)[end]


def _idle(tree: Tree, hw: Hardware, every: list[int]) -> None:
    tree.text(f"{_CPU}/cpuidle/current_driver", "acpi_idle" if hw.machine.cpu.driver == "acpi" else "intel_idle")
    tree.text(f"{_CPU}/cpuidle/current_governor", "menu")
    for cpu in every:
        if hw.machine.cpu.qos:
            path = f"{_CPU}/cpu{cpu}/power/pm_qos_resume_latency_us"
            tree.live(path, partial(processors.latency, hw, cpu), partial(processors.set_latency, hw, cpu))
        tree.later(f"{_CPU}/cpu{cpu}/cpuidle", partial(_states, hw, cpu))


def _states(hw: Hardware, cpu: int, tree: Tree) -> None:
    for number, state in enumerate(hw.machine.cpu.idle):
        folder = f"{_CPU}/cpu{cpu}/cpuidle/state{number}"
        tree.text(f"{folder}/name", state.name)
        tree.text(f"{folder}/latency", state.latency)
        forbid = partial(processors.set_disabled, hw, cpu, number)
        tree.live(f"{folder}/disable", partial(processors.disabled, hw, cpu, number), forbid)
