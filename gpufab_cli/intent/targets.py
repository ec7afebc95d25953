"""The way to each host, as the spec declares it."""

from pathlib import Path

from gpufab_cli.execute.target import Target
from gpufab_cli.spec.model import FabricSpec


def targets(spec: FabricSpec, directory: Path) -> tuple[Target, ...]:
    """Every host that may be reached: active ones and those in maintenance, in the order of the file.

    Args:
        spec: the fabric.
        directory: that of fabric.yml, which ``ssh_config`` is relative to.
    """
    connection = spec.connection
    config = (directory / connection.ssh_config).resolve() if connection.ssh_config else None
    return tuple(
        Target(
            host=host.name,
            address=host.address,
            port=connection.port,
            user=connection.user,
            ssh_config=config,
            become=connection.become,
            python=connection.python,
            state=host.state,
        )
        for host in spec.in_state("active", "maintenance")
    )
