"""What lock and discover have in common: the devices of hosts, read by the audit's collector."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from gpufab_cli.errors import Exit, GpufabError
from gpufab_cli.report.console import progress

if TYPE_CHECKING:
    from gpufab_cli.audit.collect import Collected
    from gpufab_cli.module_utils.devices import Devices
    from gpufab_cli.reach.target import Target


def look(reached: "Mapping[str, Target]", forks: int, timeout: float) -> "tuple[dict[str, Devices], list[GpufabError]]":
    """The devices of each host, and why there are none of others."""
    from gpufab_cli.audit.collect import Failure, collect
    from gpufab_cli.reach.connections import Ssh

    found: dict[str, Devices] = {}
    failures: list[GpufabError] = []
    jobs: dict[str, tuple[Target, dict[str, Any]]] = {host: (target, {}) for host, target in reached.items()}
    for collected in collect(jobs, Ssh().exec, seconds=timeout, forks=forks):
        if isinstance(collected.result, Failure) or collected.no_root:
            failures.append(_failure(collected))
        else:
            found[collected.host] = collected.result.devices
            progress(f"{collected.host}: read")
    return found, sorted(failures, key=str)


def _failure(collected: "Collected") -> GpufabError:
    """Why a host is not locked. Without root the cards do not tell their serial numbers."""
    from gpufab_cli.audit.collect import Failure

    result = collected.result
    if isinstance(result, Failure):
        return GpufabError(f"{collected.host}: {result.kind.value}: {result.message}", result.hint, Exit.UNKNOWN)
    hint = "let the user run sudo without a password"
    return GpufabError(f"{collected.host}: no root: {collected.no_root}", hint, Exit.UNKNOWN)
