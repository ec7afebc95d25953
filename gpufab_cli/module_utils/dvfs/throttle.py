"""Why a GPU runs below the clocks it could have: NVML's clock event reasons (nvml.h, nvmlClocksEventReason*)."""

from typing import Dict, Iterator, Tuple

from ..change import Finding
from .seen import GpuSeen

IDLE, APPLICATIONS, POWER_CAP, HW_SLOWDOWN = 0x1, 0x2, 0x4, 0x8
SYNC_BOOST, SW_THERMAL, HW_THERMAL, POWER_BRAKE, DISPLAY = 0x10, 0x20, 0x40, 0x80, 0x100

_TOLD: Dict[int, Tuple[str, str]] = {
    POWER_CAP: ("dvfs.power-capped", "held at its power limit"),
    HW_SLOWDOWN: ("dvfs.hw-slowdown", "slowed down by hardware"),
    SW_THERMAL: ("dvfs.thermal-slowdown", "slowed down by the driver: too hot"),
    HW_THERMAL: ("dvfs.thermal-slowdown", "slowed down by hardware: too hot"),
    POWER_BRAKE: ("dvfs.power-brake", "slowed down by the power supply's brake signal"),
}
"""What is worth telling. That a GPU is idle, or follows the clocks it was told, is not."""


def findings(pci: str, gpu: GpuSeen) -> Iterator[Finding]:
    """One finding a reason; none where it is not known."""
    bits = gpu.throttle
    for bit, (code, words) in _TOLD.items():
        covered = bit == HW_SLOWDOWN and isinstance(bits, int) and bits & (HW_THERMAL | POWER_BRAKE)
        if isinstance(bits, int) and bits & bit and not covered:
            yield Finding(code, (pci,), words)


def words(bits: int) -> Tuple[str, ...]:
    """All that is worth telling of some reasons, in words."""
    return tuple(text for bit, (_, text) in _TOLD.items() if bits & bit)
