"""What the spec wants of the kernel command line of one node."""

from dataclasses import dataclass
from typing import Annotated, Literal, Optional, Tuple

from ..schema import Doc, Pattern

Argument = Annotated[str, Pattern(r"[A-Za-z0-9_][A-Za-z0-9_.,:=/@+-]{0,199}", "one kernel argument without spaces")]


@dataclass(frozen=True)
class KernelWant:
    """Everything the kernel feature is told about one node."""

    iommu: Annotated[
        Optional[Literal["passthrough"]],
        Doc("passthrough: what VFs in guests need, in the words of the node's CPU vendor."),
    ] = None
    arguments: Annotated[Tuple[Argument, ...], Doc("Further arguments that the kernel is to be started with.")] = ()
