"""What MPI is told on one host: what its profile says, and what follows from the fabric."""

from gpufab_cli.intent.rails import class_want, rail_wants, socket_ports
from gpufab_cli.module_utils.mpi.want import MpiWant
from gpufab_cli.spec.lock import Lock
from gpufab_cli.spec.model import FabricSpec, Host


def mpi_want(spec: FabricSpec, lock: Lock, host: Host) -> MpiWant | None:
    """What the mpi feature is told about one host; None where its profile says nothing of it.

    Raises:
        GpufabError: the lock has no device for one of its rails.
    """
    mpi = spec.profile_of(host).mpi
    if mpi is None:
        return None
    return MpiWant(
        implementation=mpi.implementation,
        rails=rail_wants(spec, lock, host, mpi),
        roce=class_want(spec, host, mpi),
        tls=mpi.tls,
        binding=mpi.binding,
        socket_interfaces=mpi.socket_interfaces,
        socket_ports=socket_ports(spec, lock, host, mpi),
        takeover=mpi.takeover or None,
    )
