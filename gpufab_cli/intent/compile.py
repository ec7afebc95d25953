"""A resolved fabric → what each feature is told about each host."""

from collections.abc import Callable, Mapping
from typing import Any

from gpufab_cli.errors import GpufabError, NotLockedError, SpecErrors
from gpufab_cli.fabric.model import Resolved, ResolvedHost
from gpufab_cli.intent.addresses import duplicates
from gpufab_cli.intent.dvfs import dvfs_want
from gpufab_cli.intent.gpu_stack import gpu_stack_want
from gpufab_cli.intent.limits import limits_want
from gpufab_cli.intent.links import links_want
from gpufab_cli.intent.mpi import mpi_want
from gpufab_cli.intent.nccl_env import nccl_env_want
from gpufab_cli.intent.node import node_want
from gpufab_cli.intent.numa import numa_want
from gpufab_cli.intent.packages import nccl_want, ofed_want
from gpufab_cli.intent.roce import roce_want
from gpufab_cli.intent.sriov import firmware_want, kernel_want, sriov_want

_WANTS: Mapping[str, Callable[[Resolved, ResolvedHost], Any]] = {
    "kernel": kernel_want,
    "ofed": ofed_want,
    "nccl": nccl_want,
    "firmware": firmware_want,
    "roce": roce_want,
    "links": links_want,
    "sriov": sriov_want,
    "dvfs": dvfs_want,
    "gpu_stack": gpu_stack_want,
    "limits": limits_want,
    "numa": numa_want,
    "nccl_env": nccl_env_want,
    "mpi": mpi_want,
}
"""What each feature is told about a host; None where it is not managed. ``node`` is told which of them are."""

FEATURES = ("node", *_WANTS)
"""The features that a fabric can manage, in the order in which the roles run."""

Wants = dict[str, Any]
"""What one host is told, by feature."""


class Compiled(dict[str, Wants]):
    """What each active host is told, by name; ``unlocked`` says of which nobody can tell, and why."""

    def __init__(self) -> None:
        super().__init__()
        self.unlocked: dict[str, NotLockedError] = {}


def compile_wants(fabric: Resolved) -> Compiled:
    """The wants of every active host. Hosts in maintenance are told nothing.

    A host of which the lock lacks a device, or all, holds up no other: at bring-up some do not answer yet.

    Raises:
        SpecErrors: what hosts are to have contradicts the devices that they have.
    """
    wants = Compiled()
    errors: list[GpufabError] = []
    for host in fabric.active:
        try:
            wants[host.name] = _host_wants(fabric, host)
        except NotLockedError as error:
            wants.unlocked[host.name] = error
        except GpufabError as error:
            errors.append(error)
    errors += duplicates({host: found["sriov"] for host, found in wants.items() if "sriov" in found})
    if errors:
        raise SpecErrors(errors)
    return wants


def _host_wants(fabric: Resolved, host: ResolvedHost) -> Wants:
    error = fabric.unlocked.get(host.name) or fabric.wrong.get(host.name)
    if error is not None:
        raise error
    wants = {feature: want for feature, of in _WANTS.items() if (want := of(fabric, host)) is not None}
    return {"node": node_want(fabric.spec, wants), **wants}
