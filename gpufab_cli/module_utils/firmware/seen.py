"""What is found of the firmware settings of the NICs of one node."""

from dataclasses import dataclass, field
from typing import Dict, Tuple, Union

from ..change import Absent, Unknown

Cell = Union[str, Unknown]
"""A value as mlxconfig prints it: ``8``, ``True(1)``, ``ETH(2)``, ``Array[0..7]``."""


@dataclass(frozen=True)
class Parameter:
    """One parameter in its three truths; a release that prints only the next boot leaves the others Unknown."""

    default: Cell
    current: Cell
    next_boot: Cell


Parameters = Dict[str, Union[Parameter, Absent]]
"""The wanted parameters by name; ABSENT: the card's firmware has none of that name, or hides it."""


@dataclass(frozen=True)
class CardSeen:
    """One card: its parameters, and the VFs on its functions, which a reset takes away."""

    parameters: Union[Parameters, Unknown]
    vfs: int = 0
    users: Union[Tuple[str, ...], Unknown] = ()


@dataclass(frozen=True)
class FirmwareSeen:
    """The wanted cards by the PCI address of their first wanted port."""

    cards: Dict[str, CardSeen] = field(default_factory=dict)
