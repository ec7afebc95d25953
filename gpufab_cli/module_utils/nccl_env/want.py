"""What the spec wants NCCL to be told on one node."""

from dataclasses import dataclass
from typing import Annotated, Dict, Literal, Optional, Tuple

from ..rails import ClassWant, RailWant
from ..schema import Doc, Pattern, PciAddress, Range

Variable = Annotated[str, Pattern(r"NCCL_[A-Z0-9_]{1,59}", "an NCCL variable such as NCCL_DEBUG")]
Value = Annotated[str, Pattern(r"[A-Za-z0-9_.,:=^/+%-]{0,1023}", "a value of letters, digits and _.,:=^/+%-")]
Release = Annotated[str, Pattern(r"[0-9]+\.[0-9]+(?:\.[0-9]+)?", "a release such as 2.27.5")]
NetdevName = Annotated[str, Pattern(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}", "the name of a network interface")]
Container = Literal["enroot", "slurm", "env-file"]


@dataclass(frozen=True)
class NcclEnvWant:
    """Everything the nccl_env feature is told about one node. What is None is not managed."""

    rails: Annotated[Tuple[RailWant, ...], Doc("The RDMA ports that NCCL uses, in the order of their rails.")]
    release: Annotated[
        Optional[Release], Doc("Oldest NCCL that is told; that of the library on the node if left out.")
    ] = None
    roce: Annotated[Optional[ClassWant], Doc("The class of RoCE traffic.")] = None
    gid_index: Annotated[
        Optional[Annotated[int, Range(0, 255)]],
        Doc("GID index on every port; if left out the newest releases choose, and for older ones it is looked up."),
    ] = None
    socket_interfaces: Annotated[
        Optional[Tuple[NetdevName, ...]], Doc("Interfaces for bootstrap and sockets, by name.")
    ] = None
    socket_ports: Annotated[
        Optional[Tuple[PciAddress, ...]], Doc("Ports whose interfaces are for bootstrap and sockets.")
    ] = None
    variables: Annotated[Optional[Dict[Variable, Value]], Doc("Further variables and their values.")] = None
    containers: Annotated[
        Optional[Tuple[Container, ...]],
        Doc("Where jobs in containers get the same values from, for /etc/nccl.conf does not reach them."),
    ] = None
    takeover: Annotated[
        Optional[bool], Doc("Take out the site's own lines that say otherwise; else the file is left alone.")
    ] = None
