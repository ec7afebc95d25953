"""What commands print: results on stdout, progress on stderr."""

import json
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import click
from rich import box
from rich.console import Console
from rich.table import Table

PIPED_WIDTH = 200  # columns; a pipe has none of its own, and a table cut to 80 is of no use to grep


def results() -> Console:
    """Where results go. Colours only on a terminal, and not with NO_COLOR (rich sees to both)."""
    return Console(width=None if sys.stdout.isatty() else PIPED_WIDTH, highlight=False)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]], title: str = "") -> None:
    """Print rows under their column heads."""
    table = Table(title=title or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*row)
    results().print(table)


def print_json(data: Any) -> None:
    """Print a result as JSON."""
    click.echo(json.dumps(data, indent=2))


def progress(line: str) -> None:
    """Tell on stderr what is going on."""
    click.echo(line, err=True)
