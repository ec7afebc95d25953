"""One-shot changes of clocks and power, as jobs, operators and drivers make them. None goes to the write log."""

from collections.abc import Callable

from gpufab_cli.lab.hardware import gpus, processors
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.sysfs.system import cpus


def _persistence_off(hw: Hardware, index: int) -> None:
    gpus.change(hw, index, lambda gpu: setattr(gpu, "persistence", False))


def _clock_lost(hw: Hardware, _: int) -> None:
    gpus.reload(hw)


def _power_reset(hw: Hardware, index: int) -> None:
    gpus.change(hw, index, lambda gpu: setattr(gpu, "power_w", None))


def _governor_overwritten(hw: Hardware, _: int) -> None:
    every = (cpu for node in hw.machine.numa for cpu in cpus(node.cpus))
    now = processors.governor(hw, 0)
    processors.overwrite(hw, every, "performance" if now == "powersave" else "powersave")


DRIFTS: dict[str, Callable[[Hardware, int], None]] = {
    "persistence-off": _persistence_off,
    "clock-lost": _clock_lost,
    "power-reset-by-job": _power_reset,
    "governor-overwritten": _governor_overwritten,
}
"""By name; the number is that of the GPU, in the order of PCI addresses."""
