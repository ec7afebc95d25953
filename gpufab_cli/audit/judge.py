"""One host's snapshot against what is wanted of it. Pure: the plan that decides an apply decides the audit too."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from gpufab_cli.audit.collect import Collected, Failure, Wants, short
from gpufab_cli.catalogue import Severity, catalogue
from gpufab_cli.module_utils import planning
from gpufab_cli.module_utils.change import Change, Finding, Impact, Path, Pending, Plan, Step, Unknown
from gpufab_cli.module_utils.claim import Claim, left_drained
from gpufab_cli.module_utils.desired import wish_digest
from gpufab_cli.module_utils.features import FEATURES
from gpufab_cli.module_utils.schema import PciAddress, SchemaError, decode
from gpufab_cli.module_utils.snapshot import Snapshot
from gpufab_cli.module_utils.texts import blame


class Kind(StrEnum):
    """What a row says."""

    DRIFT = "drift"
    BLOCKED = "blocked"
    PENDING = "pending"
    FINDING = "finding"
    UNKNOWN = "unknown"


class State(StrEnum):
    """A host in one word; the worst that is known of it."""

    IN_SYNC = "in-sync"
    DRIFT = "drift"
    UNKNOWN = "unknown"


class Work(StrEnum):
    """What is left to do for a feature of a host."""

    NONE = "none"
    FINDINGS = "findings"
    """Only what gpufab does not change: a run would do nothing."""
    SOME = "some"


@dataclass(frozen=True)
class Place:
    """Where on a host. Each may be "".

    Attributes:
        device: PCI address.
        rail: the rail that the device is, such as compute/3.
        name: the setting, file or program.
    """

    device: str = ""
    rail: str = ""
    name: str = ""


@dataclass(frozen=True)
class Row:
    """One thing that is not as wanted, or not known to be.

    Attributes:
        impact: what making its step may do; empty where there is no step.
        reason: why it is blocked, unknown or pending; a finding's evidence.
        accepted: until when and why the fabric accepts it; "" if it does not.
    """

    kind: Kind
    code: str
    feature: str
    place: Place = Place()
    current: Any = None
    desired: Any = None
    impact: frozenset[Impact] = frozenset()
    reason: str = ""
    accepted: str = ""

    @property
    def severity(self) -> Severity:
        """How bad the catalogue says it is."""
        return catalogue()[self.code].severity

    @property
    def state(self) -> State:
        """What the row alone makes of its host."""
        if self.kind is Kind.UNKNOWN:
            return State.UNKNOWN
        harmless = self.kind is Kind.FINDING and self.severity is Severity.INFO
        return State.IN_SYNC if harmless or self.accepted else State.DRIFT


@dataclass(frozen=True)
class HostReport:
    """What is to be said of one host. With a ``failure`` there is nothing else."""

    host: str
    rows: tuple[Row, ...] = ()
    work: Mapping[str, Work] = field(default_factory=dict)
    failure: Failure | None = None

    @property
    def state(self) -> State:
        """The worst of its rows: known to differ is worse than unknown, unknown worse than in sync."""
        if self.failure is not None:
            return State.UNKNOWN
        states = {row.state for row in self.rows}
        return next((state for state in (State.DRIFT, State.UNKNOWN) if state in states), State.IN_SYNC)


def judge(collected: Collected, wants: Wants) -> HostReport:
    """The report of one host. What gpufab stumbles over holds up no other host or feature, and is no pass."""
    if isinstance(collected.result, Failure):
        return HostReport(collected.host, failure=collected.result)
    snapshot = collected.result
    rows: list[Row] = [_no_root(collected.no_root)] if collected.no_root else []
    rows += _left_drained(snapshot)
    work: dict[str, Work] = {}
    for feature, want in wants.items():
        found, work[feature] = _judged(feature, snapshot, want)
        rows += found
    return HostReport(collected.host, tuple(rows), work)


def _judged(feature: str, snapshot: Snapshot, want: Any) -> tuple[list[Row], Work]:
    if feature in snapshot.stumbles:
        return [stumbled(feature, snapshot.stumbles[feature])], Work.SOME
    try:
        plan = _plan(feature, snapshot, want)
        if plan is None:
            return [Row(Kind.UNKNOWN, "host.no-wish", feature, reason="taken for another wish")], Work.SOME
        return list(_rows(feature, plan, _rails(want))), _work(plan)
    except Exception as error:
        return [stumbled(feature, blame(error))], Work.SOME


def stumbled(feature: str, reason: str) -> Row:
    """What is said of a feature ("": of what hosts are compared in) over which gpufab stumbled."""
    return Row(Kind.UNKNOWN, "host.stumbled", feature, reason=short(reason))


def _plan(feature: str, snapshot: Snapshot, want: Any) -> Plan | None:
    """The feature's plan; None when the snapshot was taken for another wish and lacks what this one needs."""
    if feature not in snapshot.seen:
        return None
    try:
        return planning.plan(FEATURES[feature], snapshot, want)
    except KeyError:
        if snapshot.wishes.get(feature) == wish_digest(feature, want):
            raise  # asked for just this: the mistake is the plan's
        return None


def _work(plan: Plan) -> Work:
    if plan.steps or plan.pending:
        return Work.SOME
    return Work.NONE if plan.clean else Work.FINDINGS


LEFT_DRAINED = "host.left-drained"


def _left_drained(snapshot: Snapshot) -> list[Row]:
    """What the node itself says: from whatever folder it was drained, every operator learns of it."""
    if isinstance(snapshot.claim, Unknown):
        return [Row(Kind.UNKNOWN, LEFT_DRAINED, "", reason=short(snapshot.claim.reason))]
    if isinstance(snapshot.claim, Claim):
        return [Row(Kind.FINDING, LEFT_DRAINED, "", reason=short(left_drained(snapshot.claim)))]
    return []


def _no_root(reason: str) -> Row:
    return Row(Kind.UNKNOWN, "host.no-root", "", reason=reason)


def _rails(want: Any) -> dict[str, str]:
    """The rail of each PCI address, for a feature that has ports."""
    return {port.pci: port.rail for port in getattr(want, "ports", ())}


def _rows(feature: str, plan: Plan, rails: Mapping[str, str]) -> Iterator[Row]:
    """Each value once: what a reset would bring is told as pending, or where it is yet to be set for the next boot."""
    told = {item.path for item in plan.pending}
    for step in plan.steps:
        for change in step.changes:
            if change.path not in told:
                yield _change(feature, step, change, rails)
        told |= {change.path for change in step.changes}
    for item in plan.pending:
        yield _pending(feature, item, rails)
    for finding in plan.findings:
        yield _finding(feature, finding, rails)


def place(path: Path, rails: Mapping[str, str]) -> Place:
    """Device, rail and name of a path, whichever of them it holds."""
    device = path[0] if path and _is_pci(path[0]) else ""
    rest = path[1:] if device else path
    rail = rails.get(device, "")
    return Place(device, rail, "/".join(part for part in rest if part != rail))


def _is_pci(word: str) -> bool:
    try:
        decode(PciAddress, word)
    except SchemaError:
        return False
    return True


def _change(feature: str, step: Step, change: Change, rails: Mapping[str, str]) -> Row:
    kind, reason = (Kind.BLOCKED, step.blocked) if step.blocked else (Kind.DRIFT, "")
    if isinstance(change.current, Unknown):
        kind, reason = Kind.UNKNOWN, change.current.reason
    where = place(change.path, rails)
    return Row(kind, change.code, feature, where, change.current, change.desired, step.impact, reason)


def _pending(feature: str, item: Pending, rails: Mapping[str, str]) -> Row:
    reason = f"waits for {item.waits_for.value}"
    where = place(item.path, rails)
    return Row(Kind.PENDING, item.code, feature, where, item.running, item.next_boot, reason=reason)


def _finding(feature: str, finding: Finding, rails: Mapping[str, str]) -> Row:
    kind = Kind.UNKNOWN if finding.unknown else Kind.FINDING
    return Row(kind, finding.code, feature, place(finding.path, rails), reason=finding.evidence)
