"""Apply: audit → run → audit, until all is as declared or nothing moves any more.

The audit decides who needs what: Ansible runs only the roles with work, on only the hosts that need them, and not at
all without work. What the audit does not know counts as work.
"""

import getpass
import os
import secrets
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from gpufab_cli.apply.ansible import Listener, Play, Said
from gpufab_cli.apply.batches import Batches
from gpufab_cli.audit.audit import AuditReport
from gpufab_cli.audit.judge import HostReport, Kind, Work
from gpufab_cli.compile.fabric import Fabric
from gpufab_cli.errors import Exit
from gpufab_cli.intent.compile import FEATURES
from gpufab_cli.module_utils.change import Impact
from gpufab_cli.module_utils.converge import Status, StepResult
from gpufab_cli.module_utils.journal import Run
from gpufab_cli.outputs.render import inventory_path

ROUNDS = 3
"""A driver reload undoes what was right before it, and a fresh host needs two; more than three means a fight."""

HELD_BACK = frozenset({Status.REFUSED, Status.BUSY, Status.BLOCKED, Status.UNKNOWN})
"""Endings that another round would only repeat."""


@dataclass(frozen=True)
class Request:
    """What the operator asked for.

    Attributes:
        only: features to apply; all when empty.
        busy_ok: hosts on which steps with impact are made though they are in use.
        full: run every role on every host, in sync or not.
        connect_seconds: how long connecting to a host may take.
    """

    check: bool = False
    allow: frozenset[Impact] = frozenset()
    only: frozenset[str] = frozenset()
    busy_ok: tuple[str, ...] = ()
    full: bool = False
    forks: int = 64
    connect_seconds: float = 30


@dataclass
class Outcome:
    """What became of one host: steps that were made in any round, and how the others ended in the last."""

    made: dict[tuple[str, str], StepResult] = field(default_factory=dict)
    rest: dict[tuple[str, str], StepResult] = field(default_factory=dict)
    problem: str = ""
    unreachable: bool = False

    def take(self, said: Said) -> None:
        """Add what a module said."""
        self.problem = said.problem or self.problem
        self.unreachable = self.unreachable or said.unreachable
        for result in said.steps:
            target = self.made if result.status is Status.MADE else self.rest
            target[result.feature, result.step.name] = result

    def begin_round(self) -> None:
        """Forget how steps ended that will end anew."""
        self.rest, self.problem, self.unreachable = {}, "", False

    @property
    def steps(self) -> tuple[StepResult, ...]:
        """All steps: those that were made, then the others."""
        return (*self.made.values(), *self.rest.values())


@dataclass(frozen=True)
class Stop:
    """Why an apply did not go on to the next batch.

    Attributes:
        worse: the hosts that are worse than they were, or prove nothing, and why.
        not_begun: the hosts of later batches.
    """

    worse: Mapping[str, str]
    not_begun: tuple[str, ...]


@dataclass(frozen=True)
class ApplyReport:
    """What an apply did, and how the fabric is now; in a dry run, what it would do, and how the fabric is.

    Attributes:
        batches: the hosts with work as they were divided, those that were not begun included.
        stop: None: nothing was amiss.
        left_drained: hosts that are not given back, and why.
    """

    run: Run
    check: bool
    rounds: int
    outcomes: Mapping[str, Outcome]
    audit: AuditReport
    batches: Batches = ()
    stop: Stop | None = None
    left_drained: Mapping[str, str] = field(default_factory=dict)

    @property
    def exit_code(self) -> Exit:
        """Whatever is not as declared, or would be changed, or went wrong is 1; only not knowing is 3."""
        outcomes = self.outcomes.values()
        failed = any(outcome.problem and not outcome.unreachable for outcome in outcomes)
        left = any(result.status is not Status.UNKNOWN for outcome in outcomes for result in outcome.rest.values())
        if self.audit.exit_code is Exit.DRIFT or failed or left or self.stop or self.left_drained:
            return Exit.DRIFT
        return Exit.UNKNOWN if any(outcome.unreachable for outcome in outcomes) else self.audit.exit_code


Audit = Callable[[Fabric], AuditReport]
Drain = Callable[[Iterable[str]], Mapping[str, str]]
"""Takes hosts out of service; those of which it could not, and why."""
Runner = Callable[[Play, Listener], tuple[Said, ...]]


def new_run(fabric: Fabric) -> Run:
    """Who asks for the changes, for the journals: a run id that sorts by time, the operator behind sudo, the spec."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    user = os.environ.get("SUDO_USER") or getpass.getuser()
    return Run(id=f"{stamp}-{secrets.token_hex(3)}", user=user, spec=fabric.digest)


def apply(
    fabric: Fabric,
    request: Request,
    *,
    audit: Audit,
    runner: Runner,
    listen: Listener,
    run: Run,
    report: AuditReport | None = None,
    drain: Drain = lambda _: {},
) -> ApplyReport:
    """Bring the fabric to what is declared, as far as the request allows, all hosts with work at once.

    Args:
        audit: looks at all hosts of the fabric.
        runner: runs a play: :func:`.ansible.run`, or a test's own.
        listen: hears what each module says as soon as it has said it.
        report: an audit of just now.
        drain: is told the hosts that are about to be disturbed; one that cannot be drained is not begun.
    """
    outcomes: dict[str, Outcome] = {}
    report = report or audit(fabric)
    rounds = 0
    while rounds < ROUNDS:
        hosts = hosts_with_work(fabric, report, request)
        if not hosts or (rounds and not _moves(report, outcomes, request)):
            break
        rounds += 1
        for host in hosts:
            outcomes.setdefault(host, Outcome()).begin_round()
        kept_out = {} if request.check else drain(disturbed(hosts, report, request))
        for host, why in kept_out.items():
            outcomes[host].problem = why
        ready = tuple(host for host in hosts if host not in kept_out)
        said = runner(_play(fabric, report, request, ready, run), listen) if ready else ()
        for item in said:
            outcomes.setdefault(item.host, Outcome()).take(item)
        if request.check:
            break
        if _touched(said) or _surprising(said, report):
            report = audit(fabric)
        if not _ended(said, Status.MADE):
            break
    return ApplyReport(run, request.check, rounds, outcomes, report)


def _ended(said: Iterable[Said], *statuses: Status) -> bool:
    return any(result.status in statuses for item in said for result in item.steps)


def _touched(said: tuple[Said, ...]) -> bool:
    """Whether anything on a node may be other than the last audit saw it."""
    return _ended(said, Status.MADE, Status.FAILED) or any(item.problem for item in said)


def _surprising(said: tuple[Said, ...], report: AuditReport) -> bool:
    """Whether a role found nothing to do where the audit had seen work: somebody else, or a run that was cut off from
    here and went on over there, has done it in between.
    """
    idle = (item for item in said if item.feature and not item.steps and not item.problem)
    return any(_needs(report.hosts.get(item.host), item.feature, Request()) for item in idle)


def _features(request: Request) -> tuple[str, ...]:
    return tuple(feature for feature in FEATURES if not request.only or feature in request.only)


def _needs(report: HostReport | None, feature: str, request: Request) -> bool:
    """Whether a role has work on a host. What is not known may be work."""
    if request.full or report is None or report.failure is not None:
        return True
    return report.work.get(feature, Work.NONE) is Work.SOME


def hosts_with_work(fabric: Fabric, report: AuditReport, request: Request) -> tuple[str, ...]:
    """The hosts on which a role has something to do, or may have."""
    return tuple(
        host
        for host, wants in fabric.wants.items()
        if any(_needs(report.hosts.get(host), feature, request) for feature in _features(request) if feature in wants)
    )


def disturbed(hosts: Iterable[str], report: AuditReport, request: Request) -> tuple[str, ...]:
    """Those of the hosts on which a step with impact is to be made, as far as is known."""
    return tuple(host for host in hosts if host in report.hosts and _is_disturbed(report.hosts[host], request))


def _is_disturbed(report: HostReport, request: Request) -> bool:
    return any(
        row.kind in (Kind.DRIFT, Kind.UNKNOWN)  # what cannot be read now may be known, and changed, a moment later
        and row.impact
        and row.impact <= request.allow
        and row.feature in _features(request)
        for row in report.rows
    )


def _moves(report: AuditReport, outcomes: Mapping[str, Outcome], request: Request) -> bool:
    """Whether another round could do something that the last one has not held back already."""
    for host, outcome in outcomes.items():
        held = {feature for (feature, _), result in outcome.rest.items() if result.status in HELD_BACK}
        for feature in _features(request):
            needed = report.hosts[host].work.get(feature, Work.NONE) is Work.SOME
            if needed and feature not in held:
                return True
    return False


def _play(fabric: Fabric, report: AuditReport, request: Request, hosts: tuple[str, ...], run: Run) -> Play:
    wanted = _features(request)
    groups = {
        f"insync_{feature}": tuple(
            host for host in hosts if feature not in wanted or not _needs(report.hosts.get(host), feature, request)
        )
        for feature in FEATURES
    }
    return Play(
        inventory=inventory_path(fabric.path),
        groups=groups,
        host_vars={host: {"gpufab_busy_ok": True} for host in request.busy_ok if host in hosts},
        hosts=hosts,
        extra_vars={
            "gpufab_allow": sorted(impact.value for impact in request.allow),
            "gpufab_run": {"id": run.id, "user": run.user, "spec": run.spec},
        },
        check=request.check,
        forks=request.forks,
        connect_seconds=request.connect_seconds,
    )
