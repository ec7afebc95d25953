"""``gpufab lock``: which device is which rail, as the nodes tell it, into fabric.lock.yml."""

import difflib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpufab_cli.commands.look import look
from gpufab_cli.commands.options import collect_options, fabric_option, limit_option
from gpufab_cli.errors import Exit, GpufabError
from gpufab_cli.report.console import progress

if TYPE_CHECKING:
    from gpufab_cli.module_utils.devices import Devices
    from gpufab_cli.spec.lock import Lock


@click.command()
@fabric_option
@click.option(
    "--update", multiple=True, metavar="HOST", help="Lock a host anew, after a device was replaced; repeatable."
)
@limit_option
@click.option("--check", is_flag=True, help="Write nothing; print the differences and exit 1 if there are any.")
@collect_options
def command(
    *, fabric: Path, update: tuple[str, ...], limit: str | None, check: bool, forks: int, timeout: float
) -> int:
    """Pin the devices of each host, in fabric.lock.yml beside fabric.yml.

    Nodes are only read. Hosts that are locked stay as they are, so that a missing or replaced device is found by the
    audit and never shifts the others. Commit the file, then render.

    \b
    Examples:
      gpufab lock
      gpufab lock --limit gpu017      now that it answers; no other host is asked
      gpufab lock --update gpu017     after a card was replaced
      gpufab lock --check
    """
    from gpufab_cli.fabric.host_pattern import select
    from gpufab_cli.fabric.targets import targets
    from gpufab_cli.spec.draft import draft, wanted_hosts
    from gpufab_cli.spec.load import load
    from gpufab_cli.spec.lock import load_lock

    spec, lock = load(fabric), load_lock(fabric)
    chosen = select(limit, tuple(host.name for host in spec.in_state("active", "maintenance")))
    wanted = {host.name for host in wanted_hosts(spec, lock, update)} & set(chosen)
    found, failures = look(
        {target.host: target for target in targets(spec, fabric.parent) if target.host in wanted}, forks, timeout
    )
    drafted = draft(spec, lock, found)
    changed = _write(fabric, lock, drafted.lock, check=check)
    for error in (*failures, *drafted.errors):
        for line in error.lines():
            progress(line)
    _warn(drafted.lock, found)
    return _exit(changed and check, failures, drafted.errors)


def _write(fabric: Path, old: "Lock", new: "Lock", *, check: bool) -> bool:
    """Show the differences on stdout, write them unless told not to, and say whether there are any."""
    from gpufab_cli.disk import replace
    from gpufab_cli.spec.lock import dump, lock_path

    path = lock_path(fabric)
    if new == old:
        progress(f"{path}: nothing changed")
        return False
    before, after = dump(old) if path.exists() else "", dump(new)
    click.echo("".join(_diff(before, after, path)), nl=False)
    if not check:
        replace(path, after)
        progress(f"{path}: {len(new.hosts)} hosts locked; commit it, then run gpufab render")
    return True


def _diff(before: str, after: str, path: Path) -> Iterator[str]:
    name = path.name
    lines = before.splitlines(keepends=True), after.splitlines(keepends=True)
    return difflib.unified_diff(*lines, f"a/{name}" if before else "/dev/null", f"b/{name}")


def _warn(lock: "Lock", found: "Mapping[str, Devices]") -> None:
    """Say where a replaced card would show by its MAC address alone."""
    for host in sorted(set(found) & set(lock.hosts)):
        bare = [rail for rail, port in lock.hosts[host].ports.items() if port.serial is None]
        if bare:
            progress(f"warning: {host}: no serial number of {', '.join(bare)}")


def _exit(differs: bool, failures: "list[GpufabError]", errors: "tuple[GpufabError, ...]") -> int:
    if differs or errors:
        return Exit.DRIFT
    return Exit.UNKNOWN if failures else Exit.IN_SYNC
