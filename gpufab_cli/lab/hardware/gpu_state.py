"""What GPUs and CPUs remember."""

from dataclasses import dataclass, field
from typing import Any


@dataclass
class GpuState:
    """One GPU. A limit that is None is the default; what is pending comes with the next reset of the GPU."""

    persistence: bool = False
    power_w: float | None = None
    graphics: tuple[int, int] | None = None
    memory: tuple[int, int] | None = None
    ecc: bool = True
    ecc_pending: bool = True
    mig: bool = False
    mig_pending: bool = False

    @classmethod
    def load(cls, raw: dict[str, Any]) -> "GpuState":
        """From JSON, which knows no tuples."""
        found: dict[str, Any] = {name: tuple(v) if isinstance(v, list) else v for name, v in raw.items()}
        return cls(**found)

    def release(self) -> None:
        """The last client is gone and nothing keeps the driver's state: limits and locks go with it."""
        self.power_w = self.graphics = self.memory = None

    def unload(self, mig_is_live: bool) -> None:
        """The driver is unloaded. From Hopper on MIG mode is lost with it."""
        self.release()
        self.persistence = False
        if mig_is_live:
            self.mig = self.mig_pending = False

    def reset(self) -> None:
        """The GPU is reset: what is pending comes."""
        self.release()
        self.ecc, self.mig = self.ecc_pending, self.mig_pending


@dataclass
class CpuState:
    """What was written to sysfs since boot, by path below /sys/devices/system/cpu; the rest is as the driver has it."""

    mode: str = ""
    boost: bool = True
    values: dict[str, str] = field(default_factory=dict)
