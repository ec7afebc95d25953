"""A resolved fabric → what a launcher must be told of a job. Pure: no host is asked."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from gpufab_cli.errors import GpufabError
from gpufab_cli.fabric.host_pattern import select
from gpufab_cli.fabric.model import Resolved, ResolvedHost
from gpufab_cli.spec.lock import FILE_NAME
from gpufab_cli.spec.model import Profile

BIND = "/usr/local/bin/gpufab-bind"
"""What feature mpi installs."""
SOCKETS = ("GLOO_SOCKET_IFNAME", "TP_SOCKET_IFNAME")
"""Gloo's and TensorPipe's interface: they read no nccl.conf, and take a bare name."""


@dataclass(frozen=True)
class Place:
    """One host of a job, how the others reach it, and how many ranks it gets."""

    host: str
    address: str
    ranks: int


@dataclass(frozen=True)
class Job:
    """What is run where.

    Attributes:
        places: the hosts, those of one leaf together.
        program: of each rank, its binding in front.
        environment: what differs from the files on the hosts.
        sockets: the interfaces for start-up and TCP; () where they are not declared by name.
        mpi: whether the hosts' profiles declare MPI.
    """

    places: tuple[Place, ...]
    program: tuple[str, ...]
    environment: Mapping[str, str]
    sockets: tuple[str, ...] = ()
    mpi: bool = False

    @property
    def ranks(self) -> int:
        """How many there are."""
        return sum(place.ranks for place in self.places)


@dataclass(frozen=True)
class Request:
    """What is asked for.

    Attributes:
        limit: which hosts.
        ranks: on each host; as many as it has GPUs where that is None.
        bind: words for gpufab-bind; None runs the program as it is.
        environment: variables for each rank.
    """

    program: tuple[str, ...]
    limit: str | None = None
    ranks: int | None = None
    bind: tuple[str, ...] | None = ()
    environment: Mapping[str, str] | None = None


def make(fabric: Resolved, request: Request) -> Job:
    """The job.

    Raises:
        GpufabError: there are no hosts, or none of their GPUs is locked.
    """
    active = {host.name: host for host in fabric.active}
    hosts = in_order([active[name] for name in select(request.limit, tuple(active))])
    profiles = [host.profile for host in hosts]
    bind = (BIND, *request.bind) if request.bind is not None else ()
    if bind and not all(profile.mpi is not None for profile in profiles):
        names = ", ".join(host.name for host, profile in zip(hosts, profiles, strict=True) if profile.mpi is None)
        raise GpufabError(f"{BIND} is not kept on {names}", "mpi: in the profile has it installed; or --no-bind")
    sockets = _sockets(profiles)
    return Job(
        places=tuple(Place(host.name, host.address, request.ranks or _gpus(host)) for host in hosts),
        program=(*bind, *request.program),
        environment={**dict.fromkeys(SOCKETS if sockets else (), ",".join(sockets)), **(request.environment or {})},
        sockets=sockets,
        mpi=all(profile.mpi is not None for profile in profiles),
    )


def in_order(hosts: Sequence[ResolvedHost]) -> list[ResolvedHost]:
    """Hosts of one leaf together, leaves in the order of the file; those whose leaf is not told come last."""
    leaves = {leaf: number for number, leaf in enumerate(dict.fromkeys(host.leaf for host in hosts if host.leaf))}
    return sorted(hosts, key=lambda host: leaves.get(host.leaf or "", len(leaves)))


def _gpus(host: ResolvedHost) -> int:
    if not host.gpus:
        raise GpufabError(f"{FILE_NAME}: no GPU of {host.name}", "run gpufab lock, or give --ranks N")
    return len(host.gpus)


def _sockets(profiles: Sequence[Profile]) -> tuple[str, ...]:
    """The interfaces by name, where all hosts are told the same."""
    found = {_named(profile) for profile in profiles}
    return found.pop() if len(found) == 1 else ()


def _named(profile: Profile) -> tuple[str, ...]:
    told = (user.socket_interfaces for user in (profile.mpi, profile.nccl_env) if user is not None)
    return next((names for names in told if names), ())
