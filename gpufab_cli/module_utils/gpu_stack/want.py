"""What the spec wants of the GPU software of one node. The site installs it; gpufab looks."""

from dataclasses import dataclass
from typing import Annotated, Literal, Optional

from ..schema import Doc, Pattern

Version = Annotated[str, Pattern(r"[0-9]{3,4}(?:\.[0-9]{1,4}){1,3}", "a driver version such as 570.86.15")]
Way = Literal["any", "peermem", "dmabuf"]


@dataclass(frozen=True)
class GpuStackWant:
    """Everything the gpu_stack feature is told about one node."""

    driver: Annotated[Optional[Version], Doc("Version of the GPU driver; any if left out.")] = None
    gpudirect: Annotated[
        Optional[Way],
        Doc("The way that NICs are to reach GPU memory: by nvidia_peermem, by DMA-BUF, or either; else not checked."),
    ] = None
