"""What the spec wants of the kernel command line of one node."""

from dataclasses import dataclass
from typing import Annotated, Literal, Optional, Tuple

from ..numa.want import Use
from ..schema import Doc, Pattern, PciAddress

Argument = Annotated[str, Pattern(r"[A-Za-z0-9_][A-Za-z0-9_.,:=/@+-]{0,199}", "one kernel argument without spaces")]


@dataclass(frozen=True)
class AcsWant:
    """ACS by the kernel's own argument, pci=config_acs=, which each node computes of its PCI tree."""

    use: Annotated[Use, Doc("Who uses GPUs and NICs: bare-metal or vms.")]
    ports: Annotated[Tuple[PciAddress, ...], Doc("The RDMA ports whose bridges count, beside those of GPUs.")] = ()


@dataclass(frozen=True)
class KernelWant:
    """Everything the kernel feature is told about one node."""

    iommu: Annotated[
        Optional[Literal["passthrough"]],
        Doc("passthrough: what VFs in guests need, in the words of the node's CPU vendor."),
    ] = None
    arguments: Annotated[Tuple[Argument, ...], Doc("Further arguments that the kernel is to be started with.")] = ()
    acs: Annotated[
        Optional[AcsWant], Doc("How the kernel is to set ACS by itself; taken out again where it is left out.")
    ] = None
