"""``gpufab explain``: what a code means and what to do about it."""

import textwrap
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from gpufab_cli.commands.options import format_option
from gpufab_cli.errors import GpufabError, did_you_mean
from gpufab_cli.report.console import print_json, print_table, results

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from gpufab_cli.catalogue import Entry

_TEXTS = ("symptom", "cause", "remedy")


class _Code(click.ParamType[str]):
    """A code of the catalogue, which is read only when one is completed or explained."""

    name = "code"

    def shell_complete(
        self,
        ctx: click.Context,  # noqa: ARG002 (click's signature)
        param: click.Parameter,  # noqa: ARG002
        incomplete: str,
    ) -> list["CompletionItem"]:
        """Offer codes with their titles."""
        from click.shell_completion import CompletionItem

        from gpufab_cli.catalogue import catalogue

        return [CompletionItem(e.code, help=e.title) for e in catalogue().values() if e.code.startswith(incomplete)]


@click.command()
@click.argument("code", type=_Code(), required=False)
@format_option
def command(code: str | None, output: str) -> None:
    """Say what a code means, what causes it and what to do; without CODE, list all.

    \b
    Examples:
      gpufab explain
      gpufab explain roce.pfc
      gpufab explain roce.pfc --format json
    """
    from gpufab_cli.catalogue import catalogue

    entries = catalogue()
    if code is None:
        _list(list(entries.values()), output)
    elif code in entries:
        _explain(entries[code], output)
    else:
        raise GpufabError(f"no code {code!r}", did_you_mean(code, entries))


def _list(entries: "list[Entry]", output: str) -> None:
    if output == "json":
        print_json([_data(entry) for entry in entries])
    else:
        print_table(("code", "severity", "title"), [(e.code, e.severity.value, e.title) for e in entries])


def _explain(entry: "Entry", output: str) -> None:
    if output == "json":
        print_json(_data(entry))
        return
    from rich.text import Text

    console = results()
    console.print(Text.assemble((entry.code, "bold"), f"  {entry.severity.value}"))
    console.print(Text(entry.title))
    for name in _TEXTS:
        console.print(Text(f"\n{name}", style="bold"))
        width = min(console.width, 100)
        console.print(Text(textwrap.fill(getattr(entry, name), width, initial_indent="  ", subsequent_indent="  ")))


def _data(entry: "Entry") -> dict[str, Any]:
    return asdict(entry)
