"""What the spec wants of the resource limits of one node."""

from dataclasses import dataclass
from typing import Annotated, Tuple

from ..schema import Doc, Pattern

Size = Annotated[str, Pattern(r"unlimited|[1-9][0-9]{0,5}[MG]", "unlimited, or a size such as 512M or 64G")]
ServiceName = Annotated[str, Pattern(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,63}", "a service such as slurmd")]


@dataclass(frozen=True)
class LimitsWant:
    """Everything the limits feature is told about one node."""

    memlock: Annotated[Size, Doc("Memory that a process may lock, which RDMA does with all it registers.")]
    services: Annotated[
        Tuple[ServiceName, ...], Doc("Services that start jobs, by unit name without .service; others have their own.")
    ]
