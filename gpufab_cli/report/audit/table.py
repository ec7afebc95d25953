"""The report for people."""

from collections.abc import Iterator, Mapping

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpufab_cli.audit.audit import AuditReport
from gpufab_cli.audit.judge import HostReport, Kind, State
from gpufab_cli.catalogue import Severity
from gpufab_cli.fabric.hostlist import fold
from gpufab_cli.report.audit.lines import Block, Line, blocks
from gpufab_cli.terminal import said

_STYLES = {Severity.CRITICAL: "red", Severity.WARNING: "yellow", Severity.INFO: "cyan"}
_UNKNOWN = "magenta"
_CHANGE = "now → wanted"


def show(report: AuditReport, console: Console) -> None:
    """Print what is to be said of every host and of the fabric, then one line that sums it up."""
    found = show_rows(report.hosts, console)
    for finding in report.fabric:
        style = _STYLES[finding.severity]
        console.print(Text.assemble(("fabric ", "bold"), (finding.code, style), f" {fold(finding.hosts)}"))
        for camp in finding.evidence.split("; "):
            console.print(said(f"  {camp}"))
    console.print(Text(summary(report), style="" if found or report.fabric else "green"))


def show_rows(reports: Mapping[str, HostReport], console: Console, change: str = _CHANGE) -> bool:
    """Print the rows of hosts, ``change`` above their values; whether there were any."""
    found = blocks(reports)
    if found:
        console.print(_table(found, change))
    return bool(found)


def _table(found: tuple[Block, ...], change: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in ("host", "where", "what", change, "code", "needs"):
        table.add_column(column, overflow="fold", no_wrap=column in ("host", "code"))
    for block in found:
        for cells in _rows(block):
            table.add_row(*cells)
        table.add_section()
    return table


def _rows(block: Block) -> Iterator[tuple[Text, ...]]:
    name = Text(block.name, style="bold")
    if block.report.failure is not None:
        failure = block.report.failure
        hint = f" ({failure.hint})" if failure.hint else ""
        cells = (failure.kind.value, "", failure.message + hint, failure.code, "")
        yield (name, *(said(cell, _UNKNOWN) for cell in cells))
    for line in block.lines:
        yield (name, *_cells(line))
        name = Text("")


def _cells(line: Line) -> tuple[Text, ...]:
    style = _UNKNOWN if line.kind is Kind.UNKNOWN else "dim" if line.accepted else _STYLES[line.severity]
    return said(line.where), said(line.what), said(line.text), Text(line.code, style=style), Text(line.needs)


def summary(report: AuditReport) -> str:
    """How many hosts are how, and how many things differ."""
    hosts = report.hosts.values()
    states = {State.IN_SYNC: "in sync", State.DRIFT: "drifted", State.UNKNOWN: "unknown"}
    counts = [(sum(h.failure is None and h.state is state for h in hosts), word) for state, word in states.items()]
    failures = dict.fromkeys(h.failure.kind.value for h in hosts if h.failure is not None)
    counts += [(sum(h.failure is not None and h.failure.kind == kind for h in hosts), kind) for kind in failures]
    told = ", ".join(f"{count} {word}" for count, word in counts if count)
    rows = [row for host in hosts for row in host.rows]
    kinds = [(sum(row.kind is kind and not row.accepted for row in rows), word) for kind, word in _KINDS.items()]
    kinds.append((sum(bool(row.accepted) for row in rows), "accepted"))
    things = ", ".join(f"{count} {word}" for count, word in kinds if count)
    return f"{counted(len(hosts), 'host')}: {told}" + (f"; values: {things}" if things else "")


def counted(number: int, noun: str) -> str:
    """``1 host``, ``2 hosts``."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


_KINDS = {
    Kind.DRIFT: "drifted",
    Kind.BLOCKED: "blocked",
    Kind.PENDING: "pending",
    Kind.FINDING: "found",
    Kind.UNKNOWN: "unknown",
}
