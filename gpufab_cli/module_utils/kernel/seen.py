"""What is found of the kernel command line of one node: of each argument that may be wanted, whether it is there.

The line itself may hold secrets; it never leaves the node.
"""

from dataclasses import dataclass, field
from typing import Dict, Literal, Optional, Tuple, Union

from ..change import Absent, Unknown
from .acs import AcsSeen

There = Union[Tuple[str, ...], Unknown]


@dataclass(frozen=True)
class KernelSeen:
    """The two truths, and what decides how the second is written."""

    vendor: str
    """The CPU's vendor_id, such as GenuineIntel; "" when the kernel does not tell."""
    running: There
    next_boot: There
    loader: Literal["grub", "bls", "none"]
    drop_in: Union[str, Absent, Unknown]
    """gpufab's own file of GRUB defaults."""
    some: Dict[str, Tuple[str, ...]] = field(default_factory=dict)
    """The kernels that have an argument already, of those that others lack (boot loader entries only)."""
    garbled: Tuple[str, ...] = ()
    """Names of arguments that may be wanted, of which a kernel has one that grubby would garble (likewise)."""
    pci: Tuple[str, ...] = ()
    """Every ``pci=`` word that any kernel of the menu is started with, whoever has set it."""
    length: int = 0
    """Characters of the longest command line of the menu, ``pci=config_acs=`` aside."""
    acs: Optional[AcsSeen] = None
