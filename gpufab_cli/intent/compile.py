"""A fabric → what each feature is told about each host."""

from typing import Any

from gpufab_cli.errors import GpufabError, NotLockedError, SpecErrors
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
from gpufab_cli.intent.roce import roce_rails, roce_want
from gpufab_cli.intent.sriov import firmware_want, kernel_want, sriov_want
from gpufab_cli.spec.lock import FILE_NAME, Lock
from gpufab_cli.spec.model import FabricSpec, Host

FEATURES = (
    "node",
    "kernel",
    "ofed",
    "nccl",
    "firmware",
    "roce",
    "links",
    "sriov",
    "dvfs",
    "gpu_stack",
    "limits",
    "numa",
    "nccl_env",
    "mpi",
)
"""The features that a fabric can manage, in the order in which the roles run."""

Wants = dict[str, Any]
"""What one host is told, by feature."""


class Compiled(dict[str, Wants]):
    """What each active host is told, by name; ``unlocked`` says of which nobody can tell, and why."""

    def __init__(self) -> None:
        super().__init__()
        self.unlocked: dict[str, NotLockedError] = {}


def compile_wants(spec: FabricSpec, lock: Lock) -> Compiled:
    """The wants of every active host. Hosts in maintenance and absent ones are told nothing.

    A host of which the lock lacks a device, or all, holds up no other: at bring-up some do not answer yet.

    Raises:
        SpecErrors: what hosts are to have contradicts the devices that they have.
    """
    wants = Compiled()
    errors: list[GpufabError] = []
    for host in spec.in_state("active"):
        try:
            wants[host.name] = _host_wants(spec, lock, host)
        except NotLockedError as error:
            wants.unlocked[host.name] = error
        except GpufabError as error:
            errors.append(error)
    errors += duplicates({host: found["sriov"] for host, found in wants.items() if "sriov" in found})
    if errors:
        raise SpecErrors(errors)
    return wants


def _host_wants(spec: FabricSpec, lock: Lock, host: Host) -> Wants:
    if host.name not in lock.hosts:
        hint = f"when it answers: gpufab lock --limit {host.name}, gpufab render; all others go on without it"
        raise NotLockedError(f"{FILE_NAME}: {host.name} is not in it", hint)
    wants: Wants = {
        "kernel": kernel_want(spec, lock, host),
        "ofed": ofed_want(spec, host),
        "nccl": nccl_want(spec, host),
        "firmware": firmware_want(spec, lock, host),
        "roce": roce_want(spec, lock, host) if roce_rails(spec, host) else None,
        "links": links_want(spec, lock, host),
        "sriov": sriov_want(spec, lock, host),
        "dvfs": dvfs_want(spec, lock, host),
        "gpu_stack": gpu_stack_want(spec, host),
        "limits": limits_want(spec, host),
        "numa": numa_want(spec, lock, host),
        "nccl_env": nccl_env_want(spec, lock, host),
        "mpi": mpi_want(spec, lock, host),
    }
    managed = {feature: want for feature, want in wants.items() if want is not None}
    return {"node": node_want(spec, managed), **managed}
