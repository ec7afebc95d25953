"""What MPI is told on one host: what its profile says, and what follows from the fabric."""

from gpufab_cli.fabric.model import Resolved, ResolvedHost
from gpufab_cli.intent.rails import class_want, rail_wants, socket_ports
from gpufab_cli.module_utils.mpi.want import MpiWant


def mpi_want(fabric: Resolved, host: ResolvedHost) -> MpiWant | None:
    """What the mpi feature is told about one host; None where its profile says nothing of it."""
    mpi = host.profile.mpi
    if mpi is None:
        return None
    return MpiWant(
        implementation=mpi.implementation,
        rails=rail_wants(fabric, host, mpi),
        roce=class_want(fabric, host, mpi),
        tls=mpi.tls,
        binding=mpi.binding,
        socket_interfaces=mpi.socket_interfaces,
        socket_ports=socket_ports(host, mpi),
        takeover=mpi.takeover or None,
    )
