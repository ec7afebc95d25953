"""Options that commands share, so that they are spelt and explained the same everywhere."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])


def fabric_option(function: F) -> F:
    """``-f/--fabric PATH``, passed as ``fabric``: the fabric.yml."""
    return click.option(
        "-f",
        "--fabric",
        type=click.Path(path_type=Path),
        default="fabric.yml",
        show_default=True,
        envvar="GPUFAB_FABRIC",
        show_envvar=True,
        help="The fabric's file.",
    )(function)


def format_option(function: F) -> F:
    """``--format table|json``, passed as ``output``: how results are printed on stdout."""
    return click.option(
        "--format",
        "output",
        type=click.Choice(["table", "json"]),
        default="table",
        show_default=True,
        help="How results are printed.",
    )(function)


def collect_options(function: F) -> F:
    """``--forks N`` and ``--timeout SECONDS``, passed as ``forks`` and ``timeout``: how hosts are asked."""
    forks = click.option(
        "--forks",
        type=click.IntRange(1, 1000),
        default=64,
        show_default=True,
        metavar="N",
        help="How many hosts are asked at a time.",
    )
    return forks(timeout_option(function))


def timeout_option(function: F) -> F:
    """``--timeout SECONDS``, passed as ``timeout``: how long a host is waited for."""
    return click.option(
        "--timeout",
        type=click.FloatRange(min=0, min_open=True),
        default=30.0,
        show_default=True,
        metavar="SECONDS",
        help="How long one host may take in all.",
    )(function)


def limit_option(function: F) -> F:
    """``--limit PATTERN``, passed as ``limit``: which hosts the command is about."""
    return click.option(
        "--limit",
        metavar="PATTERN",
        help="Only these hosts: names, ranges gpu[01-04], wildcards gpu0*, with commas between; !gpu03 leaves it out.",
    )(function)
