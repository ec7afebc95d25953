"""What a profile may say of clocks and power: its GPUs, its CPUs, and what jobs may ask for."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from gpufab_cli.errors import did_you_mean
from gpufab_cli.module_utils.dvfs.want import Folder, Mhz, Watts, Word
from gpufab_cli.module_utils.schema import Pattern, Range
from gpufab_cli.spec.base import Model
from gpufab_cli.spec.faults import Fault, raise_any
from gpufab_cli.spec.gpu_models import MODELS, device_id

Unlocked = Literal["unlocked"]
Sentence = Annotated[str, Pattern(r"[^\x00-\x1f\x7f]{1,200}", "one line of text, 200 characters at most")]
TunedProfile = Annotated[str, Pattern(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}", "a tuned profile")]


def _known_model(model: str) -> str:
    if device_id(model) is None:
        raise ValueError(f"no GPU model {model!r}; {did_you_mean(model, MODELS)}, or a PCI id such as 10de:2330")
    return model


GpuModel = Annotated[
    str,
    Pattern(r"[A-Za-z0-9-]{1,40}|10de:[0-9a-f]{4}", "a GPU model such as H100-SXM5-80GB"),
    AfterValidator(_known_model),
]


class Clocks(Model):
    """Locked clocks in MHz. Two keys, for tools take them in two orders: -lgc MIN,MAX but -ac MEMORY,GRAPHICS."""

    graphics: tuple[Mhz, Mhz] | Unlocked | None = None
    """Lowest and highest graphics clock, [1200, 1980], both among those that the GPU supports; or unlocked."""
    memory: Mhz | Unlocked | None = None
    """The memory clock, among those that the GPU supports; or unlocked."""

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        if isinstance(self.graphics, tuple) and self.graphics[0] > self.graphics[1]:
            low, high = self.graphics
            hint = "the lowest comes first; a memory clock has a key of its own"
            raise_any([Fault(("graphics",), f"{low} is above {high}", hint)])
        return self


class GpuSettings(Model):
    """What is wanted of a GPU; what is left out is not managed."""

    persistence: bool | None = None
    """Whether the driver keeps GPUs initialised without clients; limits and locks are lost otherwise."""
    power_limit_w: Watts | None = None
    """Power limit in watts, within what the GPU allows."""
    clocks_mhz: Clocks | None = None
    """Locked clocks."""
    ecc: bool | None = None
    """Whether memory is protected by ECC; a change waits for a GPU reset."""
    mig: bool | None = None
    """Whether multi-instance mode is on; needs consent to gpu-reset."""


class GpuOverride(GpuSettings):
    """What one GPU has otherwise than the others of its node, and why."""

    reason: Sentence
    """Why: the slowest GPU of a node sets the pace of all."""


class Gpus(GpuSettings):
    """The GPUs of a host: all alike, but for those that are named with a reason."""

    model: GpuModel | None = None
    """The model, such as H100-SXM5-80GB, or its PCI id, such as 10de:2330; GPUs of another are left alone."""
    count: Annotated[int, Range(1, 64)] | None = None
    """How many there are."""
    overrides: dict[Annotated[int, Range(0, 63)], GpuOverride] = Field(default_factory=dict)
    """GPUs that are not like the others, by their number in the order of PCI addresses."""

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        raise_any(_gpu_faults(self))
        return self

    def of(self, number: int) -> GpuSettings:
        """What is wanted of one GPU."""
        override = self.overrides.get(number)
        if override is None:
            return self
        own = _given(override)
        if override.clocks_mhz is not None and self.clocks_mhz is not None:
            own["clocks_mhz"] = self.clocks_mhz.model_copy(update=_given(override.clocks_mhz))
        return self.model_copy(update={name: value for name, value in own.items() if name != "reason"})


def _given(model: Model) -> dict[str, Any]:
    return {name: getattr(model, name) for name in type(model).model_fields if getattr(model, name) is not None}


def _gpu_faults(gpus: Gpus) -> Iterator[Fault]:
    for number, override in gpus.overrides.items():
        if gpus.count is not None and number >= gpus.count:
            yield Fault(("overrides", number), f"there is no GPU {number}, they are 0 to {gpus.count - 1}")
        if override.model_fields_set == {"reason"}:
            yield Fault(("overrides", number), "nothing is otherwise than for the others", "leave it out")
    for loc, settings in (((), gpus), *((("overrides", n), gpus.of(n)) for n in gpus.overrides)):
        yield from _persistence_faults(loc, settings)


def _persistence_faults(loc: tuple[Any, ...], settings: GpuSettings) -> Iterator[Fault]:
    """Limits and locks last only as long as the driver keeps the GPU initialised."""
    needing = [name for name in ("power_limit_w", "clocks_mhz") if getattr(settings, name) is not None]
    if needing and settings.persistence is not True:
        hint = "persistence: true; without it the driver forgets them when the last client ends"
        yield Fault((*loc, needing[0]), f"{needing[0]} needs persistence", hint)


class Cpu(Model):
    """Frequencies and idle states of all CPUs of a host; what is left out is not managed."""

    governor: Word | None = None
    """Scaling governor, among those that the driver offers."""
    epp: Word | Annotated[int, Range(0, 255)] | None = None
    """Energy performance preference: default, performance, balance_performance, balance_power, power, or 0..255."""
    min_mhz: Mhz | None = None
    """Lowest frequency."""
    max_mhz: Mhz | None = None
    """Highest frequency."""
    boost: bool | None = None
    """Whether frequencies above the nominal one are allowed (turbo)."""
    max_cstate_us: Annotated[int, Range(0, 100_000)] | None = None
    """Longest exit latency in microseconds of an idle state that may be entered; 0: polling only."""
    owner: Literal["gpufab", "tuned"] | None = None
    """gpufab: set it although tuned or power-profiles-daemon runs; tuned: let tuned_profile set it."""
    tuned_profile: TunedProfile | None = None
    """The profile that tuned is to have active."""

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        raise_any(_cpu_faults(self))
        return self


_SET_BY_GPUFAB = ("governor", "epp", "min_mhz", "max_mhz", "boost", "max_cstate_us")


def _cpu_faults(cpu: Cpu) -> Iterator[Fault]:
    if cpu.min_mhz is not None and cpu.max_mhz is not None and cpu.min_mhz > cpu.max_mhz:
        yield Fault(("min_mhz",), f"{cpu.min_mhz} is above max_mhz {cpu.max_mhz}")
    if cpu.governor == "performance" and cpu.epp not in (None, "performance", 0):
        hint = "governor: powersave lets EPP decide; with performance leave epp out"
        yield Fault(("epp",), f"the governor performance refuses EPP {cpu.epp}", hint)
    if (cpu.owner == "tuned") != (cpu.tuned_profile is not None):
        yield Fault(("tuned_profile",), "goes with owner: tuned, and that with it", "give both or none")
    both = [name for name in _SET_BY_GPUFAB if cpu.owner == "tuned" and getattr(cpu, name) is not None]
    if both:
        yield Fault((both[0],), "is tuned's to set here", "write it into a tuned profile, or leave owner: tuned out")


class Jobs(Model):
    """Lets Slurm jobs lower their GPUs' clocks or power for as long as they run, within what the profile says."""

    scheduler: Literal["slurm"]
    """slurm: a prolog and an epilog script are put on the host."""
    prolog_dir: Folder = "/etc/slurm/prolog.d"
    """Where slurm.conf's Prolog looks for scripts."""
    epilog_dir: Folder = "/etc/slurm/epilog.d"
    """Where slurm.conf's Epilog looks for scripts."""


def job_faults(gpus: Gpus | None, jobs: Jobs | None) -> Iterator[Fault]:
    """Jobs that may ask for what has no bounds."""
    graphics = gpus.clocks_mhz.graphics if gpus is not None and gpus.clocks_mhz is not None else None
    if jobs is not None and (gpus is None or (gpus.power_limit_w is None and not isinstance(graphics, tuple))):
        yield Fault(
            ("jobs",), "the profile's gpus give no bounds", "power_limit_w or clocks_mhz: {graphics: [MIN, MAX]}"
        )
