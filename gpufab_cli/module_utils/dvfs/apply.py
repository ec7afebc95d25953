"""Make the steps of a node's clocks and power; the same functions undo them, given the changes turned round."""

from typing import Any, Callable, Dict, List, Tuple

from ..change import ABSENT, Absent, Change, Step
from ..host import Host, HostError, sha256
from . import cpu, gpus, hooks, services
from .cpu_plan import CODES as CPU_ORDER
from .gpu_plan import RUNNING
from .seen import Spread


def gpu_step(step: Step, host: Host) -> None:
    """Make the changes GPU by GPU, each GPU's in the order in which they last.

    What fails does not keep the rest from being set, or set back.

    Raises:
        HostError: with what each GPU that failed has said.
    """
    setter = gpus.setter(host)
    made: Dict[str, List[Change]] = {}
    for change in step.changes:
        made.setdefault(change.path[0], []).append(change)
    failed: List[str] = []
    for pci, changes in made.items():
        for change in sorted(changes, key=_position):
            try:
                _set(setter, pci, change.path[1], change.desired)
            except HostError as error:
                failed.append(f"{pci}: {error}")
    if failed:
        raise HostError("; ".join(failed))


def _position(change: Change) -> Tuple[bool, int]:
    """Persistence goes first when it is turned on and last when it is turned off."""
    order = (*RUNNING, "ecc", "mig")
    return change.path[1] == "persistence" and change.desired is False, order.index(change.path[1])


def _set(setter: gpus.Setter, pci: str, name: str, value: Any) -> None:
    if name in ("graphics_mhz", "memory_mhz"):
        lock = setter.graphics if name == "graphics_mhz" else setter.memory
        lock(pci, value if isinstance(value, tuple) and value else None)
    else:
        getattr(setter, {"power_limit_w": "power_limit"}.get(name, name))(pci, value)


def persistenced_step(step: Step, host: Host) -> None:
    """Have nvidia-persistenced run now and from the next boot on; undone, it only stops."""
    if step.changes[0].desired == "active":
        host.run("systemctl", "enable", "--now", services.PERSISTENCED)
    else:
        host.run("systemctl", "stop", services.PERSISTENCED)


def cpu_step(step: Step, host: Host) -> None:
    """Make the changes of all CPUs, also an undo's, in the one order that the kernel takes."""
    changes = {change.path[1]: change for change in step.changes}
    for name in sorted({"min_khz" if n == "max_khz" else n for n in changes}, key=list(CPU_ORDER).index):
        _CPU[name](host, changes)


def _limits(host: Host, changes: Dict[str, Change]) -> None:
    def of(name: str) -> Spread:
        spread: Spread = changes[name].desired if name in changes else ()
        return spread

    cpu.set_limits(host, of("min_khz"), of("max_khz"))


def _tuned(host: Host, changes: Dict[str, Change]) -> None:
    profile = changes["tuned_profile"].desired
    host.run("tuned-adm", *(("off",) if isinstance(profile, Absent) else ("profile", *profile.split())))


Writer = Callable[[Host, Dict[str, Change]], None]
_CPU: Dict[str, Writer] = {
    "boost": lambda host, changes: cpu.set_boost(host, changes["boost"].desired),
    "governor": lambda host, changes: cpu.set_policies(host, "scaling_governor", changes["governor"].desired),
    "epp": lambda host, changes: cpu.set_policies(host, "energy_performance_preference", changes["epp"].desired),
    "min_khz": _limits,
    "latency_us": lambda host, changes: cpu.set_latency(host, changes["latency_us"].desired),
    "idle_states": lambda host, changes: cpu.set_states(host, changes["idle_states"].desired),
    "tuned_profile": _tuned,
}


def jobs_step(step: Step, host: Host) -> None:
    """Write or remove the files of the job hooks, then have systemd start or stop the timer."""
    links = dict(hooks.LINKS)
    for change in step.changes:
        (path,) = change.path
        if change.desired is ABSENT:
            host.remove(path)
        elif path in links:
            host.symlink(path, change.desired)
        elif change.desired == sha256(hooks.content(path)):
            host.put(path, hooks.content(path), hooks.mode(path))
    if host.exists(services.SYSTEMD):
        host.run("systemctl", "daemon-reload")
        host.run("systemctl", "start" if host.exists(f"{hooks.UNITS}/{hooks.TIMER}") else "stop", hooks.TIMER)
