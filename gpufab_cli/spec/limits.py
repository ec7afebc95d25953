"""What a profile may say of resource limits."""

from typing import Annotated

from pydantic import AfterValidator

from gpufab_cli.module_utils.limits.want import ServiceName, Size
from gpufab_cli.spec.base import Model

JOB_STARTERS = ("slurmd", "sshd", "ssh", "containerd", "docker", "crio")
"""Services that start jobs, of which a host has some: what they run inherits their limits."""
SUFFIX = ".service"


def _plain(name: str) -> str:
    if name.endswith(SUFFIX):
        raise ValueError(f"{name!r}: write {name.removesuffix(SUFFIX)}")
    return name


Service = Annotated[ServiceName, AfterValidator(_plain)]
"""A service by its name, without .service."""


class Limits(Model):
    """Resource limits of logins and of the services that start jobs."""

    memlock: Size
    """Memory that a process may lock, as RDMA does with all it registers: unlimited, or a size such as 512M or 64G."""
    services: tuple[Service, ...] = JOB_STARTERS
    """Services that start jobs, without .service; those that a host does not have are passed over."""
