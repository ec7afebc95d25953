"""``gpufab verify``: prove on the nodes themselves that they are as declared."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpufab_cli.commands.options import fabric_option, format_option, limit_option
from gpufab_cli.errors import Exit

if TYPE_CHECKING:
    from gpufab_cli.verify.results import Result


@click.command()
@fabric_option
@limit_option
@click.option("-k", "expression", default="", metavar="EXPRESSION", help="Only these checks, as pytest's -k.")
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write a JUnit report to this file.")
@format_option
def command(fabric: Path, limit: str | None, expression: str, junit: Path | None, output: str) -> Exit:
    """Prove on the nodes that they are as declared.

    A testinfra suite over SSH. It reads the nodes by other means than the audit does, so that the two can disagree.
    What cannot be read is unknown, which is not a pass.

    \b
    Examples:
      gpufab verify
      gpufab verify --limit gpu[001-004] -k 'pfc or ets'
      gpufab verify --junit verify.xml --format json
    """
    from gpufab_cli.commands.output import print_json, progress
    from gpufab_cli.verify.expected import expected
    from gpufab_cli.verify.run import run

    nodes = expected(fabric, limit)
    progress(f"verifying {len(nodes)} hosts")
    results = run(fabric, limit=limit, expression=expression, junit=junit)
    if output == "json":
        print_json(as_data(results))
    else:
        _print(results)
    return exit_code(results)


def exit_code(results: "Iterable[Result]") -> Exit:
    """A failure outweighs what is unknown. A run without a result has proven nothing, and has failed."""
    found = {result.status for result in results}
    return Exit.DRIFT if "fail" in found or not found else Exit.IN_SYNC if found == {"pass"} else Exit.UNKNOWN


def as_data(results: "Sequence[Result]") -> dict[str, object]:
    """Plain data: every result, and how many there are of each kind."""
    import dataclasses

    return {"summary": _counts(results), "results": [dataclasses.asdict(result) for result in results]}


def _counts(results: "Iterable[Result]") -> dict[str, int]:
    statuses = [result.status for result in results]
    return {status: statuses.count(status) for status in ("pass", "fail", "unknown")}


def _print(results: "Sequence[Result]") -> None:
    from gpufab_cli.audit.fold import fold
    from gpufab_cli.commands.output import print_table
    from gpufab_cli.commands.output import results as console
    from gpufab_cli.terminal import said

    checks, groups = matrix(results)
    rows = ([check, *(cells[row] for cells in groups)] for row, check in enumerate(checks))
    print_table(["check", *map(fold, groups.values())], rows)
    for line in details(results):
        console().print(said(line))
    console().print(", ".join(f"{count} {status}" for status, count in _counts(results).items() if count))


def matrix(results: "Sequence[Result]") -> tuple[list[str], dict[tuple[str, ...], list[str]]]:
    """The checks, and their outcomes as a column for all the hosts where they came out alike."""
    checks = list(dict.fromkeys(result.check for result in results))
    columns: dict[tuple[str, ...], list[str]] = {}
    for host in sorted({result.host for result in results}):
        mine = [result for result in results if result.host == host]
        cells = tuple(cell([result for result in mine if result.check == check]) for check in checks)
        columns.setdefault(cells, []).append(host)
    return checks, columns


def cell(results: "Sequence[Result]") -> str:
    """One check on one host: pass, or on how many of its ports it fails or is unknown."""
    counts = _counts(results)
    for status in ("fail", "unknown"):
        if counts[status]:
            return status if len(results) == 1 else f"{status} {counts[status]}/{len(results)}"
    return "pass" if results else "-"


def details(results: "Iterable[Result]") -> Iterator[str]:
    """A line for each thing that is wrong or unknown, with all the hosts and ports that it is so on."""
    from gpufab_cli.audit.fold import fold

    found: dict[tuple[str, ...], dict[str, list[str]]] = {}
    for result in results:
        if result.status != "pass":
            what = result.status, result.check, result.detail
            found.setdefault(what, {}).setdefault(result.host, []).append(result.port)
    for (status, check, detail), hosts in found.items():
        alike: dict[str, list[str]] = {}
        for host, ports in hosts.items():
            alike.setdefault(fold(filter(None, ports)), []).append(host)
        for ports_in_short, names in alike.items():
            yield f"{status}: {fold(names)} {ports_in_short} {check}: {detail}".replace("  ", " ")
