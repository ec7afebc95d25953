"""What the GPUs' driver does when told something.

Setting returns whether the driver did it; it refuses with OSError: EINVAL beyond what the GPU allows, EOPNOTSUPP for
what it does not have. Clocks beyond what it has are clamped without a word, as on real ones.
"""

import errno
from collections.abc import Callable, Sequence

from gpufab_cli.lab.hardware.gpu_state import GpuState
from gpufab_cli.lab.hardware.model import Hardware, fail

# Clock event reasons (nvml.h).
IDLE, POWER_CAP, SW_THERMAL = 0x1, 0x4, 0x20


def lost(hw: Hardware, index: int) -> bool:
    """Whether the GPU has fallen off the bus."""
    return hw.state.fault("gpu-lost", str(index)) is not None


def busy(hw: Hardware, index: int) -> bool:
    """Whether a compute process runs on it."""
    return index == 0 and hw.state.fault("gpu-busy") is not None


def hot(hw: Hardware, index: int) -> bool:
    """Whether it is too hot."""
    return hw.state.fault("thermal-throttle", str(index)) is not None


def limit(hw: Hardware, index: int) -> float:
    """Its power limit in watts."""
    return hw.state.gpus[index].power_w or float(hw.machine.gpu.power_w[1])


def graphics_clock(hw: Hardware, index: int) -> int:
    """The graphics clock it runs at."""
    gpu, locked = hw.machine.gpu, hw.state.gpus[index].graphics
    if hot(hw, index):
        return gpu.idle_mhz
    if busy(hw, index):
        return locked[1] if locked else gpu.sm_mhz
    return max(gpu.idle_mhz, locked[0]) if locked else gpu.idle_mhz


def reasons(hw: Hardware, index: int) -> int:
    """Why its clocks are not higher, a bit each."""
    if hot(hw, index):
        return SW_THERMAL
    if not busy(hw, index):
        return IDLE
    return POWER_CAP if limit(hw, index) < hw.machine.gpu.power_w[1] else 0


def change(hw: Hardware, index: int, edit: Callable[[GpuState], None]) -> None:
    """Changes one GPU. Without persistence the driver forgets limits and locks when the last client ends."""

    def whole() -> None:
        gpu = hw.state.gpus[index]
        edit(gpu)
        if not gpu.persistence and not busy(hw, index):
            gpu.release()

    hw.edit(whole)


def set_power(hw: Hardware, index: int, watts: float) -> None:
    """Sets the power limit."""
    low, high = hw.machine.gpu.power_w
    if not low <= watts <= high:
        raise fail(errno.EINVAL)
    change(hw, index, lambda gpu: setattr(gpu, "power_w", watts))


def lock_graphics(hw: Hardware, index: int, clocks: tuple[int, int] | None) -> None:
    """Locks the graphics clock, or unlocks it."""
    clamped = _clamped(clocks, hw.machine.gpu.clocks)
    change(hw, index, lambda gpu: setattr(gpu, "graphics", clamped))


def lock_memory(hw: Hardware, index: int, clocks: tuple[int, int] | None) -> None:
    """Locks the memory clock, or unlocks it."""
    if not hw.machine.gpu.memory_locks:
        raise fail(errno.EOPNOTSUPP)
    clamped = _clamped(clocks, hw.machine.gpu.memory_mhz)
    change(hw, index, lambda gpu: setattr(gpu, "memory", clamped))


def _clamped(clocks: tuple[int, int] | None, supported: Sequence[int]) -> tuple[int, ...] | None:
    low, high = min(supported), max(supported)
    return tuple(min(max(clock, low), high) for clock in clocks) if clocks else None


def set_ecc(hw: Hardware, index: int, on: bool) -> None:
    """ECC from the next reset on."""
    if not hw.machine.gpu.ecc:
        raise fail(errno.EOPNOTSUPP)
    change(hw, index, lambda gpu: setattr(gpu, "ecc_pending", on))


def set_mig(hw: Hardware, index: int, on: bool) -> None:
    """Multi-instance mode: at once from Hopper on, unless somebody uses the GPU."""
    kind = hw.machine.gpu.mig
    if not kind:
        raise fail(errno.EOPNOTSUPP)

    def edit(gpu: GpuState) -> None:
        gpu.mig_pending = on
        if kind == "live" and not busy(hw, index):
            gpu.mig = on

    change(hw, index, edit)


def reset(hw: Hardware, index: int) -> None:
    """Resets a GPU."""
    if busy(hw, index):
        raise fail(errno.EBUSY)
    hw.edit(hw.state.gpus[index].reset)


def reload(hw: Hardware) -> None:
    """Unloads and loads the driver of all GPUs."""

    def edit() -> None:
        for gpu in hw.state.gpus:
            gpu.unload(hw.machine.gpu.mig == "live")
        hw.state.gpu_loads += 1

    hw.edit(edit)
    hw.restructure()
