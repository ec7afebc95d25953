"""Parts of a machine that clocks and power are about: its GPUs and its CPUs, as their profiles describe them."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Gpu:
    """The GPU model; power in watts (minimum, maximum), clocks in MHz.

    Attributes:
        sm_mhz: the highest graphics clock; they go down from it in steps to the lowest.
        memory_mhz: the memory clocks it has.
        memory_locks: whether the memory clock can be locked; parts before Ampere cannot.
        ecc: whether it has ECC, which is on from the factory.
        nvlinks: how many NVLinks it has to each other GPU; 0 without.
        mig: when multi-instance mode acts: reset (Ampere) or live (Hopper); "" without it.
        open_modules: whether the driver's kernel modules are the open ones.
    """

    vendor: str
    device: str
    subsystem_vendor: str
    subsystem_device: str
    driver: str
    name: str
    driver_version: str
    memory_mib: int
    power_w: tuple[int, int]
    sm_mhz: int
    pcie_speed: str
    pcie_width: int
    min_mhz: int = 210
    step_mhz: int = 15
    idle_mhz: int = 345
    memory_mhz: tuple[int, ...] = (2619,)
    memory_locks: bool = True
    ecc: bool = True
    mig: str = ""
    nvlinks: int = 0
    open_modules: bool = True

    @property
    def clocks(self) -> range:
        """The graphics clocks it supports, highest first."""
        return range(self.sm_mhz, self.min_mhz - 1, -self.step_mhz)


@dataclass(frozen=True)
class IdleState:
    """A state that a CPU may idle in; its exit latency in microseconds."""

    name: str
    latency: int


@dataclass(frozen=True)
class Cpu:
    """The CPUs of a machine and the driver that sets their frequencies, in MHz.

    Attributes:
        driver: intel_pstate, amd_pstate or acpi; "" where the firmware or a hypervisor keeps control.
        mode: active, passive or guided; "" for acpi.
        qos: whether the kernel takes a limit of the exit latency for each CPU.
    """

    driver: str = "intel_pstate"
    mode: str = "active"
    min_mhz: int = 800
    base_mhz: int = 2000
    max_mhz: int = 3800
    idle: tuple[IdleState, ...] = (IdleState("POLL", 0), IdleState("C1", 1), IdleState("C1E", 2), IdleState("C6", 290))
    qos: bool = True
