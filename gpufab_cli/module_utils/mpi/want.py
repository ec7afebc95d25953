"""What the spec wants MPI to be told on one node."""

from dataclasses import dataclass
from typing import Annotated, Literal, Optional, Tuple

from ..nccl_env.want import NetdevName
from ..rails import ClassWant, RailWant
from ..schema import Doc, Pattern, PciAddress

Transport = Annotated[str, Pattern(r"[a-z][a-z0-9_]{0,31}", "a transport of UCX such as rc")]
Binding = Literal["none", "core", "numa", "package"]


@dataclass(frozen=True)
class MpiWant:
    """Everything the mpi feature is told about one node. What is None is not managed."""

    implementation: Annotated[Literal["openmpi"], Doc("The MPI there is.")]
    rails: Annotated[Tuple[RailWant, ...], Doc("The RDMA ports that UCX uses, in the order of their rails.")]
    roce: Annotated[Optional[ClassWant], Doc("The class of RoCE traffic.")] = None
    tls: Annotated[Optional[Tuple[Transport, ...]], Doc("Transports that UCX uses, such as rc, cuda, sm, self.")] = None
    binding: Annotated[Optional[Binding], Doc("What a rank is bound to unless its command line says otherwise.")] = None
    socket_interfaces: Annotated[Optional[Tuple[NetdevName, ...]], Doc("Interfaces for start-up and TCP, by name.")] = (
        None
    )
    socket_ports: Annotated[
        Optional[Tuple[PciAddress, ...]], Doc("Ports whose interfaces are for start-up and TCP.")
    ] = None
    takeover: Annotated[
        Optional[bool], Doc("Take out the site's own lines that say otherwise; else the file is left alone.")
    ] = None
