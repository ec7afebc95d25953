"""What ``gpufab verify`` says of hosts, for an apply that is to go on only when it passes."""

from collections.abc import Sequence
from pathlib import Path

from gpufab_cli.fabric.hostlist import fold
from gpufab_cli.verify.results import Result
from gpufab_cli.verify.run import run


def unproven(fabric: Path, hosts: Sequence[str]) -> dict[str, str]:
    """The hosts on which a check fails or could not be made, and the first of these.

    Raises:
        GpufabError: the suite could not be run.
    """
    return reasons(run(fabric, limit=fold(hosts)))


def reasons(results: Sequence[Result]) -> dict[str, str]:
    """Each host that is not proven, and why; a failure says more than what is unknown."""
    ranked = sorted((result for result in results if result.status != "pass"), key=lambda result: result.status)
    found: dict[str, str] = {}
    for result in ranked:
        where = f" {result.port}" if result.port else ""
        found.setdefault(result.host, f"verify: {result.check}{where}: {result.status}: {result.detail}")
    return found
