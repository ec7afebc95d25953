"""What commands print: results on stdout, progress on stderr. rich is imported when a table or a bar is drawn."""

import contextlib
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from gpufab_cli.module_utils.schema import encode
from gpufab_cli.terminal import one_line, said

if TYPE_CHECKING:
    from rich.console import Console

PIPED_WIDTH = 200  # columns; a pipe has none of its own, and a table cut to 80 is of no use to grep


def results(width: int | None = None) -> "Console":
    """Where results go. Colours only on a terminal, and not with NO_COLOR (rich sees to both); brackets are no markup.

    Args:
        width: columns, where lines must not be folded whatever the terminal has.
    """
    from rich.console import Console

    class Piped(Console):
        """One whose reader may go: that ends the command as it ends others, and is no exit of rich's own."""

        def on_broken_pipe(self) -> None:
            raise BrokenPipeError

    columns = width or (None if sys.stdout.isatty() else PIPED_WIDTH)
    return Piped(width=columns, highlight=False, markup=False, emoji=False)


def print_table(
    columns: Sequence[str], rows: Iterable[Sequence[str]], title: str = "", width: int | None = None
) -> None:
    """Print rows under their column heads; ``width`` as in :func:`results`."""
    from rich import box
    from rich.table import Table

    table = Table(title=said(title) if title else None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(said(column), overflow="fold")
    for row in rows:
        table.add_row(*map(said, row))
    results(width).print(table)


def print_json(data: Any) -> None:
    """Print a result as JSON."""
    click.echo(json.dumps(encode(data), indent=2, allow_nan=False))


def tell_skipped(hosts: Sequence[str]) -> None:
    """Tell which hosts are left out, so that nobody takes a clean report for theirs."""
    from gpufab_cli.fabric.hostlist import fold

    if hosts:
        progress(f"in maintenance, not looked at: {fold(hosts)}")


def progress(line: str) -> None:
    """Tell on stderr, in one line, what is going on. Nobody may be there to hear it: that ends no run."""
    with contextlib.suppress(OSError, ValueError):
        click.echo(one_line(line), err=True)


@contextmanager
def counting(what: str, total: int) -> Iterator[Callable[[str], None]]:
    """A bar on stderr that counts hosts as they come in, by what became of each; nothing where stderr is no terminal.

    Yields:
        Call it with what became of a host.
    """
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    found: Counter[str] = Counter()
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task(what, total=total)

        def count(word: str) -> None:
            found[word] += 1
            told = ", ".join(f"{number} {name}" for name, number in sorted(found.items()))
            bar.update(task, advance=1, description=f"{what} ({told})")

        yield count
