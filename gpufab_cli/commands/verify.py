"""``gpufab verify``: prove on the nodes themselves that they are as declared."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from gpufab_cli.commands.options import fabric_option, format_option
from gpufab_cli.errors import Exit

if TYPE_CHECKING:
    from gpufab_cli.verify.results import Result


@click.command()
@fabric_option
@click.option("--limit", multiple=True, metavar="PATTERN", help="Only hosts whose name matches, such as 'gpu0*'.")
@click.option("-k", "expression", default="", metavar="EXPRESSION", help="Only these checks, as pytest's -k.")
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write a JUnit report to this file.")
@format_option
def command(fabric: Path, limit: tuple[str, ...], expression: str, junit: Path | None, output: str) -> Exit:
    """Prove on the nodes that they are as declared.

    A testinfra suite over SSH. It reads the nodes by other means than the audit does, so that the two can disagree.
    What cannot be read is unknown, which is not a pass.

    \b
    Examples:
      gpufab verify
      gpufab verify --limit 'gpu00*' -k 'pfc or ets'
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
    """A failure outweighs what is unknown."""
    found = {result.status for result in results}
    return Exit.DRIFT if "fail" in found else Exit.UNKNOWN if "unknown" in found else Exit.IN_SYNC


def as_data(results: "Sequence[Result]") -> dict[str, object]:
    """Plain data: every result, and how many there are of each kind."""
    import dataclasses

    return {"summary": _counts(results), "results": [dataclasses.asdict(result) for result in results]}


def _counts(results: "Iterable[Result]") -> dict[str, int]:
    statuses = [result.status for result in results]
    return {status: statuses.count(status) for status in ("pass", "fail", "unknown")}


def _print(results: "Sequence[Result]") -> None:
    from gpufab_cli.commands.output import print_table
    from gpufab_cli.commands.output import results as console

    checks = list(dict.fromkeys(result.check for result in results))
    hosts = sorted({result.host for result in results})
    rows = [[host, *(cell([r for r in results if (r.host, r.check) == (host, c)]) for c in checks)] for host in hosts]
    print_table(["host", *checks], rows)
    for line in details(results):
        console().print(line, markup=False)
    console().print(", ".join(f"{count} {status}" for status, count in _counts(results).items() if count))


def cell(results: "Sequence[Result]") -> str:
    """One check on one host: pass, or how many of its ports fail or are unknown."""
    counts = _counts(results)
    for status in ("fail", "unknown"):
        if counts[status]:
            return status if len(results) == 1 else f"{status} {counts[status]}/{len(results)}"
    return "pass" if results else ""


def details(results: "Iterable[Result]") -> Iterator[str]:
    """A line for each thing that is wrong or unknown on a host, with all the ports that it is so on."""
    ports: dict[tuple[str, str, str, str], list[str]] = {}
    for result in results:
        if result.status != "pass":
            ports.setdefault((result.host, result.check, result.status, result.detail), []).append(result.port)
    for (host, check, status, detail), where in ports.items():
        yield " ".join(filter(None, [host, " ".join(filter(None, where)), f"{check}: {status}: {detail}"]))
