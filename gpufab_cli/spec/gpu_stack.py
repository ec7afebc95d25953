"""What a profile may say of the GPU software of its hosts: the site installs it, gpufab looks."""

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator

from gpufab_cli.module_utils.gpu_stack.want import Version
from gpufab_cli.spec.base import Model

EXTERNAL = "external"


def _way(value: Any) -> Any:
    """The module of old has one name still in inventories."""
    if isinstance(value, str) and value.replace("-", "_") in ("nv_peer_mem", "nvidia_peermem"):
        raise ValueError(f"{value} is called peermem here; nvidia_peermem has replaced nv_peer_mem since driver 470")
    return value


class GpuStack(Model):
    """The GPU software of a host; ``external`` alone is all defaults."""

    owner: Literal["external"] = "external"
    """Who installs it: the site. gpufab checks it."""
    driver: Version | None = None
    """Version of the GPU driver, such as 570.86.15; any if left out, as long as all its parts have the same."""
    gpudirect: Annotated[Literal["any", "peermem", "dmabuf", "none"] | None, BeforeValidator(_way)] = None
    """How NICs reach GPU memory: peermem (nvidia_peermem), dmabuf, any of the two, or none: not checked. If left out,
    any where the host has RoCE or InfiniBand ports."""


def _mapping(value: Any) -> Any:
    if isinstance(value, str) and value != EXTERNAL:
        raise ValueError(f"{value!r} is neither {EXTERNAL} nor a mapping")
    return {} if value == EXTERNAL else value


GpuStackEntry = Annotated[GpuStack, BeforeValidator(_mapping, json_schema_input_type=Literal["external"] | GpuStack)]
