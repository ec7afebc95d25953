"""The vocabulary of a plan: what a value is, what would change, and what cannot be changed.

Four things are kept apart everywhere: ``None`` (the spec does not manage this), :data:`ABSENT` (known not to be
there), ``Unknown`` (could not be read, with the reason) and a value, zero and empty included.
"""

import enum
from dataclasses import dataclass, field
from typing import Any, FrozenSet, Mapping, Tuple, Union

Path = Tuple[str, ...]


@dataclass(frozen=True)
class Unknown:
    """A value that could not be read. It is not a pass, not drift, and nothing is written over it."""

    reason: str

    def __str__(self) -> str:
        return f"UNKNOWN({self.reason})"


class Absent(enum.Enum):
    """The type of :data:`ABSENT`: an enum of one member, so that it survives copying and type checks."""

    ABSENT = "absent"

    def __str__(self) -> str:
        return "ABSENT"


ABSENT = Absent.ABSENT


class Where(str, enum.Enum):
    """Which of the three truths a change is about."""

    RUNNING = "running"
    NEXT_BOOT = "next-boot"
    PERSISTED = "persisted"


class Impact(str, enum.Enum):
    """What making a step may do to those who use the node; each needs its own consent, none implies another."""

    TRAFFIC = "traffic"
    LINK_FLAP = "link-flap"
    VF_LOSS = "vf-loss"
    GPU_RESET = "gpu-reset"
    SERVICE_RESTART = "service-restart"
    DRIVER_RELOAD = "driver-reload"
    FIRMWARE_RESET = "firmware-reset"
    REBOOT = "reboot"
    MANAGEMENT_PORT = "management-port"


@dataclass(frozen=True)
class Change:
    """One value that is not as wanted. ``path`` starts with the device's PCI address where there is one.

    ``load`` says which load of a driver the value lives in, where it is lost with that; "" elsewhere.
    """

    path: Path
    current: Any
    desired: Any
    code: str
    where: Where = Where.RUNNING
    load: str = ""

    @property
    def known(self) -> bool:
        """Whether the current value could be read."""
        return not isinstance(self.current, Unknown)


@dataclass(frozen=True)
class Step:
    """The unit of consent and of failure: all its changes are made, or none is left made.

    ``device`` is the PCI address that the step touches ("" when it touches none); reading back is limited to it.
    ``blocked`` names what forbids the step whatever is consented to, such as a foreign writer; "" otherwise.
    ``users`` are those whose device the step takes away, in words; Unknown when that cannot be told.
    A step that is not ``undoable``, such as a reset, is left as it ended when it fails.
    ``undoes``: it is the way back of one that failed (:mod:`.before`).
    ``apart``: its changes begin with devices that do not need one another; where it does not go as a whole, a restore
    makes each device's on its own.
    """

    name: str
    changes: Tuple[Change, ...]
    impact: FrozenSet[Impact] = field(default_factory=frozenset)
    device: str = ""
    blocked: str = ""
    users: Union[Tuple[str, ...], Unknown] = ()
    undoable: bool = True
    undoes: bool = False
    apart: bool = False

    @property
    def label(self) -> str:
        """The step and its device: an operator looks for the one by its rail, for the other by its address."""
        return self.name + (f" ({self.device})" if self.device and self.device not in self.name else "")

    @property
    def unknowns(self) -> Tuple[Change, ...]:
        """The changes whose current value is unknown; one is enough to withhold the whole step."""
        return tuple(change for change in self.changes if not change.known)


@dataclass(frozen=True)
class Pending:
    """A value that is right for the next boot and not yet running."""

    path: Path
    running: Any
    next_boot: Any
    waits_for: Impact
    code: str


@dataclass(frozen=True)
class Finding:
    """What gpufab cannot or will not change: a dead port, a foreign writer, a replaced device.

    ``unknown``: it could not be told whether it is so. That is not a pass, and not drift either.
    """

    code: str
    path: Path
    evidence: str
    unknown: bool = False


@dataclass(frozen=True)
class Plan:
    """What one feature would do on one node, in this order, and what it found besides.

    ``skipped`` are the devices that do not answer, by PCI address, with the reason: no step holds their values. One
    that falls silent while a step is made has not taken that step.
    """

    steps: Tuple[Step, ...] = ()
    pending: Tuple[Pending, ...] = ()
    findings: Tuple[Finding, ...] = ()
    skipped: Mapping[str, str] = field(default_factory=dict)

    @property
    def clean(self) -> bool:
        """Whether nothing at all is left to say."""
        return not (self.steps or self.pending or self.findings)
