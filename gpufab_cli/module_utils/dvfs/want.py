"""What the spec wants of the clocks and power of one node: its GPUs, its CPUs, and what jobs may change for a while."""

from dataclasses import dataclass, field
from typing import Annotated, Dict, Optional, Tuple

from ..schema import Doc, Pattern, PciAddress, Range

Mhz = Annotated[int, Range(1, 20_000)]
Watts = Annotated[int, Range(1, 5_000)]
Word = Annotated[str, Pattern(r"[a-z0-9][a-z0-9_-]{0,63}", "a word such as performance")]
Folder = Annotated[str, Pattern(r"/[A-Za-z0-9._/+-]{1,254}", "an absolute path of plain characters")]


@dataclass(frozen=True)
class GpuPolicy:
    """What is wanted of a GPU. A field that is None is not managed; no clocks () means: not locked."""

    persistence: Annotated[Optional[bool], Doc("Whether the driver keeps the GPU initialised without clients.")] = None
    power_limit_w: Annotated[Optional[Watts], Doc("Power limit in watts.")] = None
    graphics_mhz: Annotated[
        Optional[Tuple[Mhz, ...]], Doc("Lowest and highest graphics clock in MHz that is locked; empty: unlocked.")
    ] = None
    memory_mhz: Annotated[
        Optional[Tuple[Mhz, ...]], Doc("Lowest and highest memory clock in MHz that is locked; empty: unlocked.")
    ] = None
    ecc: Annotated[Optional[bool], Doc("Whether memory is protected by ECC; a change waits for a GPU reset.")] = None
    mig: Annotated[Optional[bool], Doc("Whether multi-instance mode is on.")] = None
    reason: Annotated[Optional[str], Doc("Why this GPU is not like the others of its node.")] = None


@dataclass(frozen=True)
class GpuWant:
    """One GPU, pinned by the lock."""

    pci: Annotated[PciAddress, Doc("PCI address of the GPU.")]
    policy: Annotated[str, Doc("Name of the policy that it follows.")]


@dataclass(frozen=True)
class CpuWant:
    """What is wanted of every CPU. A field that is None is not managed."""

    governor: Annotated[Optional[Word], Doc("Scaling governor.")] = None
    epp: Annotated[Optional[Word], Doc("Energy performance preference: a word, or 0..255.")] = None
    min_mhz: Annotated[Optional[Mhz], Doc("Lowest frequency in MHz.")] = None
    max_mhz: Annotated[Optional[Mhz], Doc("Highest frequency in MHz.")] = None
    boost: Annotated[Optional[bool], Doc("Whether frequencies above the nominal one are allowed.")] = None
    max_cstate_us: Annotated[
        Optional[Annotated[int, Range(0, 100_000)]],
        Doc("Longest exit latency in microseconds of an idle state that may be entered."),
    ] = None
    takeover: Annotated[bool, Doc("Set all this although tuned or power-profiles-daemon sets it too.")] = False
    tuned_profile: Annotated[
        Optional[Annotated[str, Pattern(r"[A-Za-z0-9][A-Za-z0-9_. -]{0,127}", "a tuned profile")]],
        Doc("The tuned profile that sets all this instead of gpufab."),
    ] = None


@dataclass(frozen=True)
class JobsWant:
    """Where Slurm looks for the scripts that it runs before and after a job."""

    prolog_dir: Annotated[Folder, Doc("Directory of Slurm's prolog scripts.")]
    epilog_dir: Annotated[Folder, Doc("Directory of Slurm's epilog scripts.")]


@dataclass(frozen=True)
class DvfsWant:
    """Everything the dvfs feature is told about one node."""

    policies: Annotated[Dict[str, GpuPolicy], Doc("GPU policies by name.")] = field(default_factory=dict)
    gpus: Annotated[Tuple[GpuWant, ...], Doc("The GPUs of the node.")] = ()
    device: Annotated[
        Optional[Annotated[str, Pattern(r"0x[0-9a-f]{4}", "a PCI device id such as 0x2330")]],
        Doc("PCI device id that every GPU must have."),
    ] = None
    cpu: Annotated[Optional[CpuWant], Doc("What is wanted of every CPU.")] = None
    jobs: Annotated[Optional[JobsWant], Doc("Lets Slurm jobs ask for lower clocks or power while they run.")] = None
