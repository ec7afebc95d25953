"""Whether a host is worse than it was before an apply, or shows that what was applied did not stay. Pure."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gpufab_cli.apply.apply import Outcome
from gpufab_cli.audit.audit import AuditReport
from gpufab_cli.audit.judge import HostReport, Kind, Row, State, place
from gpufab_cli.catalogue import Severity
from gpufab_cli.module_utils.converge import Status, StepResult


@dataclass(frozen=True)
class Unfit:
    """Why a host is not fit, in one line; ``worse``: it was better before the apply, which is not so of a step that
    failed and was undone, nor of what was wrong already.
    """

    why: str
    worse: bool = False


def unfit(before: AuditReport, after: AuditReport, outcomes: Mapping[str, Outcome]) -> dict[str, Unfit]:
    """The hosts of an apply that failed or are worse."""
    found = {host: _why(before.hosts[host], after.hosts[host], outcome) for host, outcome in outcomes.items()}
    return {host: why for host, why in found.items() if why is not None}


def proves_nothing(canaries: Iterable[str], outcomes: Mapping[str, Outcome]) -> dict[str, str]:
    """Why the canaries say nothing about the others: no step with impact was made, though some were consented to."""
    theirs = {host: outcomes[host].held for host in canaries if host in outcomes and outcomes[host].held}
    steps = {host: outcomes[host].steps for host in canaries if host in outcomes}
    heavy = {host: [result for result in results if result.step.impact] for host, results in steps.items()}
    if any(result.status is Status.MADE for results in heavy.values() for result in results):
        return {}
    held = {host: [r for r in results if r.status is not Status.REFUSED] for host, results in heavy.items()}
    return theirs | {
        host: f"{results[0].status.value}: {results[0].reason}" for host, results in held.items() if results
    }


def _why(before: HostReport, after: HostReport, outcome: Outcome) -> Unfit | None:
    if before.failure is not None and after.failure is not None:
        return None  # it was not there before either
    new = next(_new(before, after), None)
    if outcome.problem:
        return Unfit(outcome.problem, worse=new is not None)
    failed = next((result for result in outcome.steps if result.status is Status.FAILED), None)
    if failed is not None:
        return Unfit(f"{failed.step.name}: {failed.reason}", worse=new is not None)
    if after.failure is not None:
        return Unfit(f"{after.failure.kind.value}: {after.failure.message}", worse=True)
    row = next(_undone(after, outcome), new)
    return Unfit(_words(row), worse=row is new) if row is not None else None


def _undone(after: HostReport, outcome: Outcome) -> Iterator[Row]:
    """What was made, and drifts all the same."""
    made = {_key(row) for result in outcome.made.values() for row in step_rows(result)}
    return (row for row in after.rows if row.kind is Kind.DRIFT and _key(row) in made)


def _new(before: HostReport, after: HostReport) -> Iterator[Row]:
    """What is wrong and was not, and what is not known any more. That a change waits for a reset is what was asked."""
    if before.failure is not None:
        return
    known = {_key(row) for row in before.rows}
    unknown = {_key(row) for row in before.rows if row.kind is Kind.UNKNOWN}
    for row in after.rows:
        harmless = row.state is State.IN_SYNC or row.kind is Kind.PENDING
        if not harmless and (_key(row) not in known or (row.kind is Kind.UNKNOWN and _key(row) not in unknown)):
            yield row


def _key(row: Row) -> tuple[str, str, str, str]:
    return row.feature, row.code, row.place.device, row.place.name


def _words(row: Row) -> str:
    where = " ".join(word for word in (row.place.rail or row.place.device, row.place.name) if word)
    reason = row.reason or {Kind.DRIFT: "not as declared", Kind.BLOCKED: "blocked"}.get(row.kind, "")
    return f"{row.code}{f' {where}' if where else ''}: {reason or Severity(row.severity).value}"


def step_rows(result: StepResult) -> Iterator[Row]:
    """The values of a step, as rows of an audit."""
    rails = {result.step.device: result.step.name.partition(" ")[2]} if result.step.device else {}
    for change in result.step.changes:
        where = place(change.path, rails)
        yield Row(Kind.DRIFT, change.code, result.feature, where, change.current, change.desired)
