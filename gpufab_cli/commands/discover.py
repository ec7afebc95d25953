"""``gpufab discover``: drafts fabric.yml and its lock from living nodes."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from gpufab_cli.commands.look import look
from gpufab_cli.commands.options import collect_options
from gpufab_cli.errors import Exit, GpufabError, SpecErrors
from gpufab_cli.report.console import progress

if TYPE_CHECKING:
    from gpufab_cli.discover import Drafted
    from gpufab_cli.spec.model import Connection


@click.command()
@click.argument("names", metavar="[HOST]...", nargs=-1)
@click.option(
    "--hosts", type=click.Path(path_type=Path), metavar="FILE", help="A host a line: its name and, if need be, address."
)
@click.option(
    "--dir", "directory", type=click.Path(path_type=Path), default=".", show_default=True, help="Where to write."
)
@click.option("--user", help="The user to log in as.")
@click.option("--port", type=int, help="The port of the SSH server.")
@click.option("--become", type=click.Choice(["sudo", "none"]), help="How root is gained.  [default: sudo]")
@click.option("--python", metavar="PATH", help="The Python on the nodes.")
@click.option("--ssh-config", type=click.Path(path_type=Path), help="The site's own ssh_config.")
@collect_options
def command(
    *,
    names: tuple[str, ...],
    hosts: Path | None,
    directory: Path,
    user: str | None,
    port: int | None,
    become: str | None,
    python: str | None,
    ssh_config: Path | None,
    forks: int,
    timeout: float,
) -> int:
    """Draft fabric.yml and fabric.lock.yml from living nodes.

    Nodes are only read. What they do not say, such as the lossless class that is wanted, is left to you: gpufab
    validate asks for it. Files that are there are left alone.

    \b
    Examples:
      gpufab discover gpu[001-032] --user ops --dir pod1
      gpufab discover --hosts hosts.txt
    """
    from gpufab_cli.discover import Found, discover
    from gpufab_cli.fabric.targets import target

    paths = (directory / "fabric.yml", directory / "fabric.lock.yml")
    for path in paths:
        if path.exists():
            raise GpufabError(f"{path}: already there", "name another directory with --dir")
    addresses = _addresses(names, hosts)
    config = os.path.relpath(ssh_config, directory) if ssh_config else None
    connection = _connection(user=user, port=port, become=become, python=python, ssh_config=config)
    reached = {name: target(connection, directory, name, address) for name, address in addresses.items()}
    devices, failures = look(reached, forks, timeout)
    for error in failures:
        for line in error.lines():
            progress(line)
    if not devices:
        return Exit.UNKNOWN
    found = (Found(name, addresses[name], devices[name]) for name in addresses if name in devices)
    _write(discover(found, [error.message for error in failures], connection), *paths)
    return Exit.UNKNOWN if failures else Exit.IN_SYNC


def _addresses(names: Iterable[str], file: Path | None) -> Mapping[str, str]:
    """The address of each host, in the order in which they are named."""
    from gpufab_cli.spec import ranges
    from gpufab_cli.spec.types import check_address, check_host_name

    found: dict[str, str] = {}
    for where, pattern, address in (*(("", name, None) for name in names), *_lines(file)):
        try:
            expanded = ranges.expand(pattern)
            addresses = ranges.expand(address) if address else expanded
            if len(addresses) != len(expanded):
                raise ValueError(f"{len(addresses)} addresses for {len(expanded)} names")
            for name, one in zip(expanded, addresses, strict=True):
                check_host_name(name)
                found[name] = check_address(one)
        except ValueError as error:
            raise GpufabError(f"{where}{error}") from error
    if not found:
        raise GpufabError("no host is named", "gpufab discover HOST..., or --hosts FILE")
    return found


def _lines(file: Path | None) -> Iterator[tuple[str, str, str | None]]:
    try:
        text = file.read_text(encoding="utf-8") if file else ""
    except (OSError, UnicodeDecodeError) as error:
        raise GpufabError(f"{file}: {getattr(error, 'strerror', None) or 'not UTF-8 text'}") from error
    for number, line in enumerate(text.splitlines(), 1):
        words = re.sub(r"#.*", "", line).split()
        if len(words) > 2:  # noqa: PLR2004 (a name and an address)
            raise GpufabError(f"{file}:{number}: more than a name and an address")
        if words:
            yield f"{file}:{number}: ", words[0], words[1] if len(words) > 1 else None


def _connection(**said: Any) -> "Connection":
    """The connection that the options describe, checked as that of a fabric.yml is."""
    from gpufab_cli.spec import source
    from gpufab_cli.spec.load import validate
    from gpufab_cli.spec.model import Connection

    given = {key: value for key, value in said.items() if value is not None}
    try:
        return validate(source.Document("", given, ""), Connection)
    except SpecErrors as failure:
        messages = (error.message.removeprefix(":1: ") for error in failure.errors)
        raise SpecErrors([GpufabError(f"--{message}") for message in messages]) from failure


def _write(drafted: "Drafted", fabric: Path, lock: Path) -> None:
    from gpufab_cli.disk import replace
    from gpufab_cli.spec.lock import dump

    replace(fabric, drafted.fabric)
    replace(lock, dump(drafted.lock))
    progress(f"{fabric}, {lock.name}: {len(drafted.lock.hosts)} hosts; edit it, then run gpufab validate -f {fabric}")
