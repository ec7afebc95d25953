"""A job in the words of each launcher: argument lists, never a shell's text. Pure.

Open MPI 5's run-time is PRRTE: parameters of its own go behind ``--prtemca``; ``vader`` is ``sm`` there and openib is
gone. Launchers bind nothing here, for gpufab-bind does, CPUs and memory both.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from gpufab_cli.errors import GpufabError
from gpufab_cli.launch.job import Job, Place

Launcher = Literal["mpirun", "srun", "torchrun"]
Transport = Literal["ucx", "tcp"]
FOUR, FIVE = 4, 5
DIFFERS = ("NCCL_IB_HCA", "UCX_NET_DEVICES")
"""What names devices, which each host numbers for itself."""
RENDEZVOUS_PORT = 29500
"""torchrun's usual."""


@dataclass(frozen=True)
class Options:
    """What a launcher is told besides the job.

    Attributes:
        release: Open MPI's major release.
        mpirun: the program.
        transport: what carries messages: UCX, or TCP where there is no RDMA.
        parameters: further MCA parameters of Open MPI.
        hostfile: path that the hosts stand in; None has them on the command line.
    """

    release: int = FIVE
    mpirun: str = "mpirun"
    transport: Transport = "ucx"
    parameters: Mapping[str, str] | None = None
    hostfile: str | None = None


@dataclass(frozen=True)
class Line:
    """One command and where it is run; "" for any one host of the job."""

    host: str
    argv: tuple[str, ...]


def hostfile(job: Job) -> str:
    """The hosts as mpirun reads them, in the order in which they are filled."""
    return "".join(f"{place.address} slots={place.ranks}\n" for place in job.places)


def lines(job: Job, launcher: Launcher, options: Options) -> tuple[Line, ...]:
    """The commands that start the job.

    Raises:
        GpufabError: the launcher cannot do it.
    """
    return _LAUNCHERS[launcher](job, options)


def _mpirun(job: Job, options: Options) -> tuple[Line, ...]:
    where = ("--hostfile", options.hostfile) if options.hostfile else ("--host", _slots(job))
    parameters = {**_transport(options), **_tcp(job, options), **(options.parameters or {})}
    start = _start(job, options)
    argv = (
        *(options.mpirun, "--np", str(job.ranks), *where, "--map-by", "slot", "--bind-to", "none"),
        *(word for name, value in start.items() for word in ("--prtemca", name, value)),
        *(word for name, value in parameters.items() for word in ("--mca", name, value)),
        *(word for name, value in job.environment.items() for word in ("-x", f"{name}={value}")),
        *job.program,
    )
    return (Line("", argv),)


def _slots(job: Job) -> str:
    six = next((place for place in job.places if ":" in place.address), None)
    if six is not None:
        raise GpufabError(f"{six.host}: --host cannot tell {six.address} from its slots", "give --hostfile FILE")
    return ",".join(f"{place.address}:{place.ranks}" for place in job.places)


def _transport(options: Options) -> dict[str, str]:
    old = options.release == FOUR
    if options.transport == "ucx":
        return {"pml": "ucx", **({"btl": "^openib"} if old else {})}
    return {"pml": "ob1", "btl": f"tcp,{'vader' if old else 'sm'},self"}


def _tcp(job: Job, options: Options) -> dict[str, str]:
    names = ("btl_tcp_if_include", "oob_tcp_if_include") if options.release == FOUR else ("btl_tcp_if_include",)
    return dict.fromkeys(names if job.sockets else (), ",".join(job.sockets))


def _start(job: Job, options: Options) -> dict[str, str]:
    return {"prte_if_include": ",".join(job.sockets)} if job.sockets and options.release >= FIVE else {}


def _srun(job: Job, options: Options) -> tuple[Line, ...]:  # noqa: ARG001 (as all launchers)
    ranks = _even(job, "srun")
    argv = (
        *_environment(job),
        *("srun", f"--nodes={len(job.places)}", f"--ntasks={job.ranks}", f"--ntasks-per-node={ranks}"),
        *("--distribution=block:block", f"--nodelist={','.join(place.host for place in job.places)}"),
        *(f"--gpus-per-node={ranks}", "--gpu-bind=none", "--cpu-bind=none", "--mem-bind=none", "--export=ALL"),
        *(("--mpi=pmix",) if job.mpi else ()),
        *job.program,
    )
    return (Line("", argv),)


def _torchrun(job: Job, options: Options) -> tuple[Line, ...]:  # noqa: ARG001
    """A line a host: a fixed node rank has ranks follow the order of hosts, which dynamic rendezvous does not."""
    ranks = _even(job, "torchrun")
    first = job.places[0]

    def line(number: int, place: Place) -> Line:
        argv = (
            *_environment(job),
            *("torchrun", f"--nnodes={len(job.places)}", f"--node-rank={number}", f"--nproc-per-node={ranks}"),
            *(f"--master-addr={first.address}", f"--master-port={RENDEZVOUS_PORT}", "--no-python"),
            *job.program,
        )
        return Line(place.host, argv)

    return tuple(line(number, place) for number, place in enumerate(job.places))


def _even(job: Job, launcher: str) -> int:
    counts = {place.ranks for place in job.places}
    if len(counts) > 1:
        raise GpufabError(f"{launcher} starts as many ranks on each host, and these have {sorted(counts)}", "--ranks N")
    return counts.pop()


def _environment(job: Job) -> tuple[str, ...]:
    return ("env", *(f"{name}={value}" for name, value in job.environment.items())) if job.environment else ()


_LAUNCHERS: dict[Launcher, Callable[[Job, Options], tuple[Line, ...]]] = {
    "mpirun": _mpirun,
    "srun": _srun,
    "torchrun": _torchrun,
}
