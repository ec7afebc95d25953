"""What a profile may say of MPI."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal

from gpufab_cli.module_utils.mpi.want import Binding, Transport
from gpufab_cli.spec.base import NotEmpty
from gpufab_cli.spec.faults import Fault
from gpufab_cli.spec.rails import RailUser, user_faults

if TYPE_CHECKING:
    from gpufab_cli.spec.model import FabricSpec, Profile


class Mpi(RailUser):
    """What Open MPI and UCX are told on each host, in the files of every Open MPI that is installed there."""

    implementation: Literal["openmpi"]
    """The MPI there is."""
    tls: Annotated[tuple[Transport, ...], NotEmpty] | None = None
    """Transports that UCX uses (UCX_TLS), such as [rc, cuda, sm, self]; left to UCX if left out."""
    binding: Binding | None = None
    """What a rank is bound to unless its command line says otherwise: none, core, numa or package."""


def mpi_faults(spec: "FabricSpec", profile: "Profile") -> Iterator[Fault]:
    """Where MPI does not fit the fabric; paths are relative to the profile."""
    if profile.mpi is not None:
        yield from user_faults(spec, profile, "mpi", profile.mpi)
