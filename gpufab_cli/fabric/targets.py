"""The way to each host, as the spec declares it."""

from pathlib import Path

from gpufab_cli.reach.target import Target
from gpufab_cli.spec.model import Connection, FabricSpec, State


def targets(spec: FabricSpec, directory: Path) -> tuple[Target, ...]:
    """Every host that may be reached: active ones and those in maintenance, in the order of the file.

    Args:
        spec: the fabric.
        directory: that of fabric.yml, which ``ssh_config`` is relative to.
    """
    hosts = spec.in_state("active", "maintenance")
    return tuple(target(spec.connection, directory, host.name, host.address, host.state) for host in hosts)


def target(connection: Connection, directory: Path, host: str, address: str, state: State = "active") -> Target:
    """The way to one host."""
    return Target(
        host=host,
        address=address,
        port=connection.port,
        user=connection.user,
        ssh_config=(directory / connection.ssh_config).resolve() if connection.ssh_config else None,
        become=connection.become,
        python=connection.python,
        state=state,
    )
