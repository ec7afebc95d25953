"""What the spec wants of gpufab's own footprint on a node."""

from dataclasses import dataclass
from typing import Annotated, Optional, Tuple

from ..limits.want import ServiceName
from ..schema import Doc, Pattern, Range
from .order import JOBS

FeatureName = Annotated[str, Pattern(r"[a-z][a-z_]{0,30}", "a feature name")]
Interpreter = Annotated[str, Pattern(r"/[A-Za-z0-9._/+-]{1,254}", "the absolute path of a Python")]
WAIT_S = 60


@dataclass(frozen=True)
class NodeWant:
    """Everything the node feature is told about one node."""

    features: Annotated[Tuple[FeatureName, ...], Doc("The managed features; wishes of others are removed.")]
    python: Annotated[
        Optional[Interpreter],
        Doc("The Python that starts gpufab at boot, before the network; the one that runs the module if left out."),
    ] = None
    wait_s: Annotated[
        Annotated[int, Range(0, 600)],
        Doc("Seconds that the network and services that start jobs wait at boot for the pinned ports; 0: not at all."),
    ] = WAIT_S
    services: Annotated[
        Optional[Tuple[ServiceName, ...]],
        Doc(
            "Services that start jobs, by unit name without .service: they start after the ports were restored; "
            "those of the usual schedulers and container runtimes if left out."
        ),
    ] = None

    @property
    def jobs(self) -> Tuple[str, ...]:
        """The services."""
        return JOBS if self.services is None else self.services
