"""``gpufab resume``: give hosts back that an apply has left drained."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpufab_cli.commands.options import collect_options, fabric_option, format_option
from gpufab_cli.errors import Exit
from gpufab_cli.report.console import print_json, print_table

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


def _hosts(context: click.Context, _: click.Parameter, incomplete: str) -> "list[CompletionItem]":
    """The hosts that are drained, as far as is known here."""
    from click.shell_completion import CompletionItem

    from gpufab_cli.apply.states import States

    folder = Path(context.params.get("fabric") or "fabric.yml").parent
    known = States(folder).all()
    return [
        CompletionItem(host, help=state.stage.value) for host, state in known.items() if host.startswith(incomplete)
    ]


@click.command()
@click.argument("hosts", nargs=-1, required=True, metavar="HOST...", shell_complete=_hosts)
@fabric_option
@click.option("--by-hand", is_flag=True, help="They were given back already: run nothing, take it down.")
@click.option("--note", default="", metavar="TEXT", help="Why, for the record in .gpufab/given-back.jsonl.")
@collect_options
@format_option
@click.pass_context
def command(
    context: click.Context,
    *,
    hosts: tuple[str, ...],
    fabric: Path,
    by_hand: bool,
    note: str,
    forks: int,
    timeout: float,
    output: str,
) -> Exit:
    """Give hosts back that an apply has left drained.

    Runs the site's resume: command for each, and takes the note of the drain from this folder and from the node. A host
    that no apply has left drained is not touched: somebody else may have drained it for a reason of their own. One that
    another apply is at work on is refused.

    \b
    Examples:
      gpufab resume gpu017
      gpufab resume gpu[001-004] --note 'cable replaced, verify passes'
      gpufab resume gpu017 --by-hand --note 'scontrol, by kim'

    Exit codes: 0 all given back, 1 some were not, 2 usage or spec error.
    """
    from gpufab_cli.apply.apply import new_run
    from gpufab_cli.apply.drain import Service, running
    from gpufab_cli.apply.effects import Doors
    from gpufab_cli.apply.resume import Resume
    from gpufab_cli.commands.apply import interruptible
    from gpufab_cli.compile.fabric import load_fabric

    doors = context.find_object(Doors) or Doors()
    declared = load_fabric(fabric, None)
    run = new_run(declared)
    service = Service(fabric.parent, declared.drain, declared.resume, doors.command, run)
    resume = Resume(declared, service, doors.execute, run, seconds=timeout, forks=forks, by_hand=by_hand)
    with interruptible(service), service.states.locked(run.id) as lock, running.keeping(lock):
        problems = resume.give_back(_named(hosts, tuple(declared.wants), service.states.all()), note)
    _show(problems, output)
    return Exit.DRIFT if any(problems.values()) else Exit.IN_SYNC


def _named(patterns: Sequence[str], active: tuple[str, ...], drained: "Iterable[str]") -> tuple[str, ...]:
    """The hosts that are meant, also those that fabric.yml no longer has."""
    from gpufab_cli.fabric.host_pattern import select

    known = tuple(dict.fromkeys((*active, *drained)))
    return tuple(dict.fromkeys(host for pattern in patterns for host in select(pattern, known)))


def _show(problems: "dict[str, str]", output: str) -> None:
    if output == "json":
        rows = {host: {"given_back": not why, "problem": why} for host, why in problems.items()}
        print_json({"format": 1, "hosts": rows})
        return
    print_table(
        ("host", "ended", "why"), [(h, "not given back" if why else "given back", why) for h, why in problems.items()]
    )
