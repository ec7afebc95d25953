"""What Slurm's prolog and epilog call: ``job begin``, ``job end``, and ``job sweep`` for jobs that ended otherwise."""

import re
from typing import Any, Mapping, Optional, Tuple

from .. import desired
from ..converge import Order, Outcome, Status, converge
from ..daemons import named
from ..devices import gather as gather_devices
from ..host import Host, HostError
from ..journal import Run
from ..schema import SchemaError
from ..texts import natural
from . import jobs
from .feature import Dvfs
from .gpu_plan import GPUS
from .want import DvfsWant

MISSING = "SLURM_JOB_ID is not set: this is no prolog or epilog of Slurm"


def begin(host: Host, environment: Mapping[str, str]) -> Tuple[str, ...]:
    """Set what the job asks for, if the node's policy allows it; what became of it, in words.

    Raises:
        HostError: the request cannot be kept; the node then has its own policy.
    """
    job, want = _job(environment), _kept(host)
    asked = jobs.request(environment.get("SLURM_JOB_COMMENT", ""))
    if want is None or asked is None:
        return ()
    gpus = _gpus(host, want, environment.get("SLURM_JOB_GPUS", ""))
    try:
        policies = {want.policies[gpu.policy] for gpu in want.gpus if gpu.pci in gpus}
        if len(policies) != 1:
            raise ValueError("its GPUs have no common policy")
        held = jobs.bounded(job, gpus, asked, policies.pop())
    except ValueError as error:
        return (f"job {job}: refused: {error}",)
    jobs.write(host, held)
    outcome = _converge(host, want, job)
    if _failed(outcome):
        return (*_words(job, outcome), *end(host, environment))
    return _words(job, outcome)


def end(host: Host, environment: Mapping[str, str]) -> Tuple[str, ...]:
    """Set the node's own policy again."""
    return _end(host, (_job(environment),))


def sweep(host: Host) -> Tuple[str, ...]:
    """End the jobs that are gone: their step daemons have ended, whoever killed the epilog or kept it waiting."""
    running = _running(host)
    gone = [job for job in jobs.names(host) if job not in running]
    return _end(host, tuple(gone))


def _end(host: Host, gone: Tuple[str, ...]) -> Tuple[str, ...]:
    """End the jobs that are gone. A job is forgotten when the policy's values are back, and until then swept again."""
    for job in gone:
        jobs.end(host, job)
    ended, want = jobs.ended(host), _kept(host)
    if not ended:
        return ()
    outcome = _converge(host, want, ended[0]) if want is not None else Outcome()
    if not _gpus_left(outcome):
        for job in ended:
            jobs.forget(host, job)
    return _words(" ".join(ended), outcome)


def _job(environment: Mapping[str, str]) -> str:
    job = environment.get("SLURM_JOB_ID", "")
    if not re.fullmatch(r"[0-9]{1,18}", job):
        raise HostError(MISSING)
    return job


def _kept(host: Host) -> Optional[DvfsWant]:
    """The wish kept on the node, GPUs only: a job has nothing to do with the rest."""
    kept = dict(desired.load(host, {"dvfs": DvfsWant})).get("dvfs")
    if isinstance(kept, SchemaError):
        raise kept
    return DvfsWant(policies=kept.policies, gpus=kept.gpus, device=kept.device) if kept is not None else None


def _gpus(host: Host, want: DvfsWant, indices: str) -> Tuple[str, ...]:
    """The job's GPUs among those wanted. Slurm counts them in the order of their PCI addresses, as NVML does."""
    every = [gpu.pci for gpu in gather_devices(host).gpus if gpu.driver == "nvidia"]
    numbers = [number for number in map(natural, indices.split(",")) if number is not None]
    chosen = {every[number] for number in numbers if number < len(every)}
    return tuple(gpu.pci for gpu in want.gpus if gpu.pci in chosen)


def _running(host: Host) -> Tuple[str, ...]:
    """The jobs that have a step daemon: ``slurmstepd: [123.extern]`` on its command line."""
    lines = (str(host.read(f"/proc/{p.pid}/cmdline")) for p in named(host, ("slurmstepd",)))
    found = (re.search(r"\[(\d+)\.", line) for line in lines)
    return tuple(match[1] for match in found if match)


def _converge(host: Host, want: DvfsWant, job: str) -> Outcome:
    feature: Any = Dvfs()
    return converge(host, feature, want, Order(restore=True, run=Run(id=f"job-{job}", user="slurm")))


def _failed(outcome: Outcome) -> bool:
    refused = any(finding.code in ("dvfs.power-range", "dvfs.clock-range") for finding in outcome.findings)
    return refused or _gpus_left(outcome)


def _gpus_left(outcome: Outcome) -> bool:
    """Whether a GPU may have other values than wanted."""
    gpus = (result for result in outcome.steps if result.step.name == GPUS)
    return any(result.status is not Status.MADE for result in gpus)


def _words(job: str, outcome: Outcome) -> Tuple[str, ...]:
    return tuple(
        f"job {job}: {result.step.label}: {result.status.value}{': ' + result.reason if result.reason else ''}"
        for result in outcome.steps
    )
