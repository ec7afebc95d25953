"""``gpufab render``: fabric.yml and its lock → what is written for others, such as the Ansible inventory."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpufab_cli.commands.options import fabric_option
from gpufab_cli.errors import Exit

if TYPE_CHECKING:
    from gpufab_cli.outputs.files import FileChange


@click.command()
@fabric_option
@click.option("--check", is_flag=True, help="Write nothing; print the differences and exit 1 if there are any.")
@click.option("--diff", is_flag=True, help="Print the differences that are written.")
def command(fabric: Path, check: bool, diff: bool) -> Exit:
    """Write beside fabric.yml what `outputs:` in it names: the Ansible inventory.

    Only files that bear gpufab's header are written or deleted; the site's own variables go in files beside them, such
    as inventory/group_vars/gpufab/site.yml.

    \b
    Examples:
      gpufab render
      gpufab render --check            in CI: is the committed inventory stale?
      gpufab render -f pod1/fabric.yml --diff

    A host that is not locked is in no managed group; all others are rendered.

    Exit codes: 0 rendered, 1 --check found differences, 2 usage or spec error, 3 rendered without a host that is not
    locked.
    """
    from gpufab_cli.outputs.files import write
    from gpufab_cli.outputs.render import rendered
    from gpufab_cli.report.console import progress

    made = rendered(fabric)
    found = made.changes
    if check or diff:
        _print_diff(found, fabric.parent)
    if not check:
        write(fabric.parent, found)
    progress(_summary(found, check=check))
    for host, why in made.unlocked.items():
        progress(f"{host}: in no managed group: {why.words}")
    return Exit.DRIFT if check and found else Exit.UNKNOWN if made.unlocked else Exit.IN_SYNC


def _print_diff(changes: "tuple[FileChange, ...]", root: Path) -> None:
    for change in changes:
        for line in change.diff(root):
            click.echo(line, nl=False)


def _summary(changes: "tuple[FileChange, ...]", *, check: bool) -> str:
    if not changes:
        return "what is rendered is up to date"
    deleted = sum(change.wanted is None for change in changes)
    parts = [f"{count} to {verb}" if check else f"{count} {verb}" for count, verb in _counts(changes, deleted, check)]
    return "files: " + ", ".join(parts)


def _counts(changes: "tuple[FileChange, ...]", deleted: int, check: bool) -> list[tuple[int, str]]:
    verbs = ("write", "delete") if check else ("written", "deleted")
    counts = zip((len(changes) - deleted, deleted), verbs, strict=True)
    return [(count, verb) for count, verb in counts if count]
