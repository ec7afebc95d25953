"""What an apply did, for people and for machines."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from gpufab_cli.apply.apply import ApplyReport, Outcome, Stop
from gpufab_cli.apply.regressions import step_rows
from gpufab_cli.audit.audit import AuditReport
from gpufab_cli.audit.judge import HostReport, Row
from gpufab_cli.fabric.hostlist import fold
from gpufab_cli.module_utils.change import Impact
from gpufab_cli.module_utils.converge import Status, StepResult
from gpufab_cli.module_utils.restore import RESTORE_ALLOW
from gpufab_cli.module_utils.schema import encode
from gpufab_cli.report.audit import json as audit_json
from gpufab_cli.report.audit import table as audit_table
from gpufab_cli.report.audit.table import counted
from gpufab_cli.terminal import said

FORMAT = 1

_STYLES = {
    "made": "green",
    "would-make": "green",
    "refused": "yellow",
    "busy": "yellow",
    "blocked": "yellow",
    "unknown": "magenta",
    "unreachable": "magenta",
}
_ORDER = ("made", "would-make", "refused", "busy", "blocked", "unknown", "failed", "not-begun", "unreachable")
_CHANGED = (Status.MADE, Status.WOULD_MAKE)


@dataclass(frozen=True)
class Line:
    """Steps of one host that ended alike, for one reason."""

    ending: str
    steps: str
    reason: str


def data(report: ApplyReport) -> dict[str, Any]:
    """The report as JSON data, its format counted by ``format``; ``audit`` is in the audit's own format."""
    return {
        "format": FORMAT,
        "exit_code": int(report.exit_code),
        "check": report.check,
        "run": encode(report.run),
        "rounds": report.rounds,
        "batches": [list(batch) for batch in report.batches],
        "stop": _stop_data(report.stop),
        "left_drained": dict(report.left_drained),
        "hosts": {host: _outcome_data(outcome) for host, outcome in report.outcomes.items()},
        "audit": audit_json.data(report.audit),
    }


def _stop_data(stop: Stop | None) -> dict[str, Any] | None:
    return None if stop is None else {"worse": dict(stop.worse), "not_begun": list(stop.not_begun)}


def _outcome_data(outcome: Outcome) -> dict[str, Any]:
    found: dict[str, Any] = {"steps": [_step_data(result) for result in outcome.steps]}
    found |= {"problem": outcome.problem, "unreachable": outcome.unreachable}
    return {**found, "held": outcome.held, "not_begun": dict(outcome.not_begun)}


def _step_data(result: StepResult) -> dict[str, Any]:
    step = encode(result.step)
    return {"feature": result.feature, "status": result.status.value, "reason": result.reason, **step}


def show(report: ApplyReport, console: Console, *, diff: bool) -> None:
    """Print what became of every step, on request each value, and how the fabric is now."""
    if report.outcomes:
        console.print(_table(report))
    if diff:
        title = "now → would be" if report.check else "was → is"
        audit_table.show_rows(_changed_rows(report), console, title)
    for sentence in _sentences(report):
        console.print(said(sentence))
    if report.check and report.rounds:
        console.print(Text(_summary(report)))
        return
    if report.outcomes:
        console.print(Text(_summary(report) + ". The fabric now:"))
    audit_table.show(report.audit, console)


def _table(report: ApplyReport) -> Table:
    groups: dict[tuple[Line, ...], list[str]] = {}
    for host, outcome in report.outcomes.items():
        groups.setdefault(tuple(_lines(outcome)), []).append(host)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for column in ("host", "ended", "steps", "why"):
        table.add_column(column, overflow="fold", no_wrap=column in ("host", "ended"))
    for lines, hosts in groups.items():
        name = Text(fold(hosts), style="bold")
        for line in lines:
            ending = Text(line.ending, style=_STYLES.get(line.ending, "red"))
            table.add_row(name, ending, said(line.steps), said(line.reason))
            name = Text("")
        table.add_section()
    return table


def _lines(outcome: Outcome) -> Iterator[Line]:
    """The endings of one host, in a fixed order; steps that ended alike together."""
    groups: dict[tuple[str, str], list[str]] = {}
    for result in outcome.steps:
        groups.setdefault((result.status.value, result.reason), []).append(result.step.name)
    if outcome.problem:
        groups.setdefault(("unreachable" if outcome.unreachable else "failed", outcome.problem), [])
    for feature, why in outcome.not_begun.items():
        groups.setdefault(("not-begun", why), []).append(feature)
    if outcome.held:
        groups.setdefault(("not-begun", outcome.held), [])
    if not groups:
        yield Line("nothing", "", "the roles found nothing to do")
    for (ending, reason), names in sorted(groups.items(), key=lambda item: _ORDER.index(item[0][0])):
        yield Line(ending, fold(names), reason)


def _sentences(report: ApplyReport) -> Iterator[str]:
    yield from _stop_sentences(report.stop)
    for why, hosts in _alike(report.left_drained).items():
        yield f"{fold(hosts)} {'stays' if len(hosts) == 1 else 'stay'} drained: {why}"
    yield from _refused_sentences(report)


def _stop_sentences(stop: Stop | None) -> Iterator[str]:
    if stop is None:
        return
    for why, hosts in _alike(stop.worse).items():
        yield f"Not fit: {fold(hosts)}: {why}"
    if stop.not_begun:
        yield f"Stopped. Not begun: {fold(stop.not_begun)}"


def _alike(reasons: Mapping[str, str]) -> dict[str, list[str]]:
    """The hosts of each reason."""
    groups: dict[str, list[str]] = {}
    for host, why in reasons.items():
        groups.setdefault(why, []).append(host)
    return groups


def _refused_sentences(report: ApplyReport) -> Iterator[str]:
    refused = [r for outcome in report.outcomes.values() for r in outcome.steps if r.status is Status.REFUSED]
    if not refused:
        return
    needed = frozenset[Impact]().union(*(result.step.impact for result in refused))
    names = ",".join(sorted(impact.value for impact in needed))
    yield f"Refused steps were not begun. To make them: gpufab apply --allow {names}"
    if not report.check and any(result.step.impact <= RESTORE_ALLOW for result in refused):
        yield (
            "At the next boot they are made without being asked for: the node keeps the wish and restores it before"
            " the network is up. Management ports are never touched then."
        )


def _summary(report: ApplyReport) -> str:
    endings = [result.status.value for outcome in report.outcomes.values() for result in outcome.steps]
    counts = [f"{endings.count(ending)} {ending}" for ending in _ORDER if ending in endings]
    problems = sum(bool(outcome.problem) for outcome in report.outcomes.values())
    counts += [f"{counted(problems, 'host')} with a problem"] if problems else []
    hosts, rounds = counted(len(report.outcomes), "host"), counted(report.rounds, "round")
    return f"{hosts} in {rounds}: {', '.join(counts) or 'no steps'}"


def _changed_rows(report: ApplyReport) -> Mapping[str, HostReport]:
    """Each value that was, or would be, changed, as rows of an audit."""
    return {host: HostReport(host, tuple(_rows(outcome.steps))) for host, outcome in report.outcomes.items()}


def _rows(results: Iterable[StepResult]) -> Iterator[Row]:
    for result in results:
        if result.status in _CHANGED:
            yield from step_rows(result)


def told(audit: AuditReport) -> str:
    """One line about an audit within an apply, for progress."""
    return audit_table.summary(audit)
