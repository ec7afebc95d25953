"""Clocks and power of one host: what the profile wants, at the GPUs that the lock pins."""

from gpufab_cli.errors import NotLockedError
from gpufab_cli.fabric.model import Resolved, ResolvedHost
from gpufab_cli.module_utils.dvfs.want import CpuWant, DvfsWant, GpuPolicy, GpuWant, JobsWant
from gpufab_cli.spec.dvfs import Clocks, Cpu, Gpus, GpuSettings, Jobs
from gpufab_cli.spec.gpu_models import device_id
from gpufab_cli.spec.lock import FILE_NAME

DEFAULT = "default"
"""Name of the policy that all GPUs follow which are not overridden."""


def dvfs_want(_: Resolved, host: ResolvedHost) -> DvfsWant | None:
    """What the dvfs feature is told about one host; None where its profile says nothing of clocks and power.

    Raises:
        NotLockedError: the lock does not hold as many GPUs as the profile says.
    """
    profile = host.profile
    if profile.gpus is None and profile.cpu is None:
        return None
    gpus = profile.gpus
    count = _count(gpus, host) if gpus is not None else 0
    return DvfsWant(
        policies=_policies(gpus, count) if gpus is not None else {},
        gpus=tuple(GpuWant(host.gpus[number], _policy(gpus, number)) for number in range(count)),
        device=device_id(gpus.model) if gpus is not None and gpus.model is not None else None,
        cpu=_cpu(profile.cpu) if profile.cpu is not None else None,
        jobs=_jobs(profile.jobs) if profile.jobs is not None else None,
    )


def _count(gpus: Gpus, host: ResolvedHost) -> int:
    locked = len(host.gpus)
    wanted = gpus.count if gpus.count is not None else locked
    missing = [number for number in gpus.overrides if number >= locked]
    if locked != wanted or missing or not locked:
        says = f"has {wanted}" if locked != wanted else f"overrides GPU {missing[0]}" if missing else "has GPUs"
        hint = f"run gpufab lock --update {host.name}, or mend gpus: of the profile"
        raise NotLockedError(f"{FILE_NAME}: {locked} GPUs of {host.name}, its profile {says}", hint)
    return locked


def _policy(gpus: Gpus | None, number: int) -> str:
    return f"gpu{number}" if gpus is not None and number in gpus.overrides else DEFAULT


def _policies(gpus: Gpus, count: int) -> dict[str, GpuPolicy]:
    numbers = {_policy(gpus, number): number for number in range(count)}
    return {name: _gpu(gpus.of(number), _reason(gpus, number)) for name, number in numbers.items()}


def _reason(gpus: Gpus, number: int) -> str | None:
    return gpus.overrides[number].reason if number in gpus.overrides else None


def _gpu(settings: GpuSettings, reason: str | None) -> GpuPolicy:
    clocks = settings.clocks_mhz or Clocks()
    return GpuPolicy(
        persistence=settings.persistence,
        power_limit_w=settings.power_limit_w,
        graphics_mhz=() if clocks.graphics == "unlocked" else clocks.graphics,
        memory_mhz=_memory(clocks),
        ecc=settings.ecc,
        mig=settings.mig,
        reason=reason,
    )


def _memory(clocks: Clocks) -> tuple[int, ...] | None:
    """One clock is a range of that clock alone."""
    if clocks.memory == "unlocked":
        return ()
    return (clocks.memory, clocks.memory) if clocks.memory is not None else None


def _cpu(cpu: Cpu) -> CpuWant:
    return CpuWant(
        governor=cpu.governor,
        epp=str(cpu.epp) if cpu.epp is not None else None,
        min_mhz=cpu.min_mhz,
        max_mhz=cpu.max_mhz,
        boost=cpu.boost,
        max_cstate_us=cpu.max_cstate_us,
        takeover=cpu.owner == "gpufab",
        tuned_profile=cpu.tuned_profile,
    )


def _jobs(jobs: Jobs) -> JobsWant:
    return JobsWant(prolog_dir=jobs.prolog_dir, epilog_dir=jobs.epilog_dir)
