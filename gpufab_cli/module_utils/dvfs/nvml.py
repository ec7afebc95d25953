"""The NVML backend: the same values as the nvidia-smi backend, without a program's words in between."""

from typing import Any, Callable, Dict, Iterable, Optional, Tuple, Union

from ..change import ABSENT, Absent, Unknown
from ..host import Host, Reader
from ..nvml import (
    CLOCK_GRAPHICS,
    DRIVER_NOT_LOADED,
    FUNCTION_NOT_FOUND,
    GPU_IS_LOST,
    MILLIWATTS,
    NOT_SUPPORTED,
    Getters,
    Handle,
    NvmlError,
    Setters,
)
from ..schema import decode, encode
from .seen import GpuSeen


def read(
    host: Reader, wanted: Iterable[str], *, clocks: bool
) -> Tuple[Union[Dict[str, GpuSeen], Unknown], Dict[str, str]]:
    """The wanted GPUs and those that are lost, as :func:`.smi.read` gives them."""
    addresses = tuple(wanted)
    answer = host.nvml(lambda nvml: encode({pci: _reach(nvml, pci, clocks) for pci in addresses}))
    if isinstance(answer, (Absent, Unknown)):
        return Unknown(str(answer)) if isinstance(answer, Absent) else answer, {}
    lost = {pci: item for pci, item in answer.items() if isinstance(item, str)}
    gpus = {pci: decode(GpuSeen, item) for pci, item in answer.items() if pci not in lost}
    return gpus, lost


def _reach(nvml: Getters, pci: str, clocks: bool) -> Union[GpuSeen, str]:
    try:
        return _gpu(nvml, nvml.handle(pci), clocks)
    except NvmlError as error:
        if error.code == DRIVER_NOT_LOADED:
            raise
        return str(error)


def _gpu(nvml: Getters, gpu: Handle, clocks: bool) -> GpuSeen:
    def number(function: str, *arguments: int) -> Any:
        return _value(lambda: nvml.number(f"nvmlDeviceGet{function}", gpu, *arguments))

    def watts(function: str) -> Any:
        return _watts(number(function))

    low, high = _pair(nvml, gpu, "PowerManagementLimitConstraints")
    ecc, ecc_next = _pair(nvml, gpu, "EccMode")
    mig, mig_next = _pair(nvml, gpu, "MigMode")
    memory = _value(lambda: nvml.clocks("nvmlDeviceGetSupportedMemoryClocks", gpu)) if clocks else ABSENT
    return GpuSeen(
        name=nvml.name(gpu),
        persistence=_flag(number("PersistenceMode")),
        power_limit_w=watts("PowerManagementLimit"),
        power_enforced_w=watts("EnforcedPowerLimit"),
        power_default_w=watts("PowerManagementDefaultLimit"),
        power_min_w=_watts(low),
        power_max_w=_watts(high),
        graphics_now_mhz=number("ClockInfo", CLOCK_GRAPHICS),
        ecc=_flag(ecc),
        ecc_pending=_flag(ecc_next),
        mig=_flag(mig),
        mig_pending=_flag(mig_next),
        throttle=_value(lambda: nvml.reasons(gpu)),
        memory_clocks_mhz=memory,
        graphics_clocks_mhz=_value(lambda: _graphics(nvml, gpu, memory)) if isinstance(memory, tuple) else memory,
    )


def _graphics(nvml: Getters, gpu: Handle, memory: Tuple[int, ...]) -> Tuple[int, ...]:
    """The graphics clocks that go with some memory clock."""
    found = [nvml.clocks("nvmlDeviceGetSupportedGraphicsClocks", gpu, clock) for clock in memory]
    return tuple(sorted({clock for clocks in found for clock in clocks}))


def _value(read: Callable[[], Any]) -> Any:
    """What a getter gives; a GPU that is lost is lost as a whole."""
    try:
        return read()
    except NvmlError as error:
        if error.code in (GPU_IS_LOST, DRIVER_NOT_LOADED):
            raise
        return ABSENT if error.code in (NOT_SUPPORTED, FUNCTION_NOT_FOUND) else Unknown(f"NVML: {error}")


def _pair(nvml: Getters, gpu: Handle, function: str) -> Tuple[Any, Any]:
    value = _value(lambda: nvml.pair(f"nvmlDeviceGet{function}", gpu))
    return value if isinstance(value, tuple) else (value, value)


def _watts(milliwatts: Any) -> Any:
    return milliwatts / MILLIWATTS if isinstance(milliwatts, int) else milliwatts


def _flag(value: Any) -> Any:
    return bool(value) if isinstance(value, int) else value


class NvmlSetter:
    """Sets one GPU at a time. Each method raises HostError."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def _set(self, pci: str, function: str, *arguments: int) -> None:
        def order(nvml: Setters) -> None:
            nvml.set(f"nvmlDevice{function}", nvml.handle(pci), *arguments)

        self._host.set_nvml(order)

    def persistence(self, pci: str, on: bool) -> None:
        """Persistence mode; NVML asks nvidia-persistenced where that runs."""
        self._set(pci, "SetPersistenceMode", int(on))

    def power_limit(self, pci: str, watts: float) -> None:
        """The power limit."""
        self._set(pci, "SetPowerManagementLimit", round(watts * MILLIWATTS))

    def graphics(self, pci: str, clocks: Optional[Tuple[int, ...]]) -> None:
        """Lock the graphics clock, or unlock it."""
        self._lock(pci, "Gpu", clocks)

    def memory(self, pci: str, clocks: Optional[Tuple[int, ...]]) -> None:
        """Lock the memory clock, or unlock it."""
        self._lock(pci, "Memory", clocks)

    def _lock(self, pci: str, what: str, clocks: Optional[Tuple[int, ...]]) -> None:
        """Where locking is not supported, nothing is locked: unlocking has nothing to do."""
        if clocks:
            self._set(pci, f"Set{what}LockedClocks", *clocks)
            return

        def unlock(nvml: Setters) -> None:
            try:
                nvml.set(f"nvmlDeviceReset{what}LockedClocks", nvml.handle(pci))
            except NvmlError as error:
                if error.code not in (NOT_SUPPORTED, FUNCTION_NOT_FOUND):
                    raise

        self._host.set_nvml(unlock)

    def ecc(self, pci: str, on: bool) -> None:
        """ECC from the next GPU reset on."""
        self._set(pci, "SetEccMode", int(on))

    def mig(self, pci: str, on: bool) -> None:
        """Multi-instance mode: at once on Hopper and later, from the next GPU reset on before."""
        self._host.set_nvml(lambda nvml: nvml.set_mig(nvml.handle(pci), on))
