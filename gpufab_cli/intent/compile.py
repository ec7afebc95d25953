"""A fabric → what each feature is told about each host."""

from typing import Any

from gpufab_cli.errors import GpufabError, SpecErrors
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

SHOWN = 5  # names in an error message

Wants = dict[str, Any]
"""What one host is told, by feature."""


def compile_wants(spec: FabricSpec, lock: Lock) -> dict[str, Wants]:
    """The wants of every active host, by name. Hosts in maintenance and absent ones are told nothing.

    Raises:
        GpufabError: hosts are not in the lock, or (SpecErrors) it lacks a device of a host, for every such host.
    """
    _check_locked(spec, lock)
    wants: dict[str, Wants] = {}
    errors: list[GpufabError] = []
    for host in spec.in_state("active"):
        try:
            wants[host.name] = _host_wants(spec, lock, host)
        except GpufabError as error:
            errors.append(error)
    errors += duplicates({host: found["sriov"] for host, found in wants.items() if "sriov" in found})
    if errors:
        raise SpecErrors(errors)
    return wants


def _check_locked(spec: FabricSpec, lock: Lock) -> None:
    unlocked = [host.name for host in spec.in_state("active") if host.name not in lock.hosts]
    if unlocked:
        names = ", ".join(unlocked[:SHOWN]) + (", ..." if len(unlocked) > SHOWN else "")
        raise GpufabError(f"{FILE_NAME}: {len(unlocked)} hosts are not in it: {names}", "run gpufab lock")


def _host_wants(spec: FabricSpec, lock: Lock, host: Host) -> Wants:
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
