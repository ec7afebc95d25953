"""What ``gpufab verify`` has found, for people and for machines."""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from gpufab_cli.fabric.hostlist import fold
from gpufab_cli.report import console
from gpufab_cli.terminal import said

if TYPE_CHECKING:  # pytest comes with it
    from gpufab_cli.verify.results import Result


def data(results: "Sequence[Result]") -> dict[str, object]:
    """Plain data: every result, and how many there are of each kind."""
    return {"summary": _counts(results), "results": [dataclasses.asdict(result) for result in results]}


def _counts(results: "Iterable[Result]") -> dict[str, int]:
    statuses = [result.status for result in results]
    return {status: statuses.count(status) for status in ("pass", "fail", "unknown")}


def show(results: "Sequence[Result]") -> None:
    """Print the matrix of checks, and a line for each thing that is wrong or unknown."""
    checks, groups = matrix(results)
    rows = ([check, *(cells[row] for cells in groups)] for row, check in enumerate(checks))
    console.print_table(["check", *map(fold, groups.values())], rows)
    for line in details(results):
        console.results().print(said(line))
    console.results().print(", ".join(f"{count} {status}" for status, count in _counts(results).items() if count))


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
