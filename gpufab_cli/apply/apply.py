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
from typing import Any, Protocol

from gpufab_cli.apply.ansible import Listener, Play, Said
from gpufab_cli.apply.batches import Batches
from gpufab_cli.audit.audit import AuditReport
from gpufab_cli.audit.judge import HostReport, Kind, Work
from gpufab_cli.compile.fabric import Fabric
from gpufab_cli.errors import Exit
from gpufab_cli.intent.compile import FEATURES
from gpufab_cli.intent.needs import needs
from gpufab_cli.intent.roles import role
from gpufab_cli.module_utils.ansible_module import CONSENT
from gpufab_cli.module_utils.change import Impact
from gpufab_cli.module_utils.converge import Status, StepResult
from gpufab_cli.module_utils.journal import Run
from gpufab_cli.outputs.render import inventory_path

ROUNDS = 3
"""A driver reload undoes what was right before it, and a fresh host needs two; more than three means a fight."""

STEP_SECONDS = 600
"""How long one module may take on one host: the longest are resets of firmware and rehearsals of packages."""

PACKAGES_SECONDS = 1800
"""Likewise a transaction of the package manager, at least: modules may have to be built for several kernels."""

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
        step_seconds: how long one module may take on one host.
    """

    check: bool = False
    allow: frozenset[Impact] = frozenset()
    only: frozenset[str] = frozenset()
    busy_ok: tuple[str, ...] = ()
    full: bool = False
    forks: int = 64
    connect_seconds: float = 30
    step_seconds: int = STEP_SECONDS


@dataclass
class Outcome:
    """What became of one host: steps that were made in any round, and how the others ended in the last.

    Attributes:
        held: why the host was not begun, for a reason that is not its own: another run has it.
        not_begun: features that were not begun, and why.
    """

    made: dict[tuple[str, str], StepResult] = field(default_factory=dict)
    rest: dict[tuple[str, str], StepResult] = field(default_factory=dict)
    problem: str = ""
    unreachable: bool = False
    held: str = ""
    not_begun: dict[str, str] = field(default_factory=dict)

    def take(self, said: Said) -> None:
        """Add what a module said."""
        self.problem = said.problem or self.problem
        self.unreachable = self.unreachable or said.unreachable
        for result in said.steps:
            target = self.made if result.status is Status.MADE else self.rest
            target[result.feature, result.step.name] = result

    def begin_round(self) -> None:
        """Forget how steps ended that will end anew."""
        self.rest, self.problem, self.unreachable, self.held, self.not_begun = {}, "", False, "", {}

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
        failed = any((o.problem and not o.unreachable) or o.held or o.not_begun for o in outcomes)
        left = any(result.status is not Status.UNKNOWN for outcome in outcomes for result in outcome.rest.values())
        if self.audit.exit_code is Exit.DRIFT or failed or left or self.stop or self.left_drained:
            return Exit.DRIFT
        return Exit.UNKNOWN if any(outcome.unreachable for outcome in outcomes) else self.audit.exit_code


Audit = Callable[[Fabric], AuditReport]
Runner = Callable[[Play, Listener], tuple[Said, ...]]


@dataclass(frozen=True)
class Kept:
    """Why a host is not begun; ``theirs``: another run has it, which says nothing about the host."""

    why: str
    theirs: bool = False


class Guard(Protocol):
    """Stands between an apply and the hosts that it would disturb."""

    @property
    def claimed(self) -> bool:
        """Whether modules make a step with impact only under this run's claim on their node."""

    def prepare(self, hosts: Iterable[str]) -> Mapping[str, Kept]:
        """Make hosts ready to be disturbed; those that are not to be begun."""

    def begin(self, hosts: Iterable[str]) -> None:
        """Note that a playbook is about to run on hosts."""

    def consents(self, host: str) -> bool:
        """Whether a step with impact may be made on the host in this round."""


class NoGuard:
    """For a dry run, and where there is nothing to guard."""

    claimed = False

    def prepare(self, hosts: Iterable[str]) -> Mapping[str, Kept]:  # noqa: ARG002
        """Keep nobody out."""
        return {}

    def begin(self, hosts: Iterable[str]) -> None:
        """Note nothing."""

    def consents(self, host: str) -> bool:  # noqa: ARG002
        """The operator's consent is for every host."""
        return True


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
    guard: Guard | None = None,
) -> ApplyReport:
    """Bring the fabric to what is declared, as far as the request allows, all hosts with work at once.

    Args:
        audit: looks at all hosts of the fabric.
        runner: runs a play: :func:`.ansible.run`, or a test's own.
        listen: hears what each module says as soon as it has said it.
        report: an audit of just now.
        guard: is told the hosts that are about to be disturbed; one that it does not make ready is not begun.
    """
    guard = NoGuard() if request.check or guard is None else guard
    outcomes: dict[str, Outcome] = {}
    report = report or audit(fabric)
    rounds = 0
    while rounds < ROUNDS:
        hosts = hosts_with_work(fabric, report, request)
        if not hosts or (rounds and not _moves(report, outcomes, request)):
            break
        rounds += 1
        touched = (*disturbed(hosts, report, request), *_withheld(hosts, outcomes, request))
        for host in hosts:
            outcomes.setdefault(host, Outcome()).begin_round()
        ready = _ready(hosts, guard.prepare(dict.fromkeys(touched)), outcomes)
        guard.begin(ready)
        said = runner(_play(fabric, report, request, ready, run=run, guard=guard), listen) if ready else ()
        for item in said:
            outcomes.setdefault(item.host, Outcome()).take(item)
        for host in ready:
            outcomes[host].not_begun = _not_begun(
                [item for item in said if item.host == host], _wanted(fabric, report, request, host)
            )
        if request.check:
            break
        if _touched(said) or _surprising(said, report):
            report = audit(fabric)
        if not _ended(said, Status.MADE) and not _withheld(hosts, outcomes, request):
            break
    return ApplyReport(run, request.check, rounds, outcomes, report)


def _ready(hosts: Iterable[str], kept_out: Mapping[str, Kept], outcomes: Mapping[str, Outcome]) -> tuple[str, ...]:
    """The hosts that are begun; of the others it is noted why not."""
    for host, kept in kept_out.items():
        if kept.theirs:
            outcomes[host].held = kept.why
        else:
            outcomes[host].problem = kept.why
    return tuple(host for host in hosts if host not in kept_out)


def _withheld(hosts: Iterable[str], outcomes: Mapping[str, Outcome], request: Request) -> tuple[str, ...]:
    """Hosts with a step whose impact showed only on the node: consented to, but the host was not drained for it."""
    return tuple(
        host
        for host in hosts
        if host in outcomes and any(_is_withheld(result, request) for result in outcomes[host].rest.values())
    )


def _is_withheld(result: StepResult, request: Request) -> bool:
    impact = result.step.impact
    return not request.check and result.status is Status.REFUSED and bool(impact) and impact <= request.allow


def _not_begun(said: Iterable[Said], wanted: Iterable[str]) -> dict[str, str]:
    """The features that were to run on a host and did not, as one that they need failed."""
    heard = tuple(said)
    failed = {item.feature for item in heard if item.ended or item.problem or _ended((item,), *_FAILS)}
    ran = {item.feature for item in heard}
    missing = {feature: next((name for name in needs(feature) if name in failed), "") for feature in wanted}
    return {f: f"needs {name}, which failed" for f, name in missing.items() if name and f not in ran}


_FAILS = (Status.FAILED, Status.NOT_BEGUN, Status.UNKNOWN)


def _wanted(fabric: Fabric, report: AuditReport, request: Request, host: str) -> tuple[str, ...]:
    wants = fabric.wants.get(host, {})
    return tuple(f for f in _features(request) if f in wants and _needs(report.hosts.get(host), f, request))


def _ended(said: Iterable[Said], *statuses: Status) -> bool:
    return any(result.status in statuses for item in said for result in item.steps)


def _touched(said: tuple[Said, ...]) -> bool:
    """Whether anything on a node may be other than the last audit saw it."""
    return _ended(said, Status.MADE, Status.FAILED) or any(item.problem for item in said)


def _surprising(said: tuple[Said, ...], report: AuditReport) -> bool:
    """Whether a role found nothing to do where the audit had seen work: somebody else, or a run that was cut off from
    here and went on over there, has done it in between.
    """
    idle = (item for item in said if item.feature and not (item.steps or item.problem or item.ended))
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
        held = {
            feature
            for (feature, _), result in outcome.rest.items()
            if result.status in HELD_BACK and not _is_withheld(result, request)
        }
        for feature in _features(request):
            needed = report.hosts[host].work.get(feature, Work.NONE) is Work.SOME
            if needed and feature not in held:
                return True
    return False


def _play(
    fabric: Fabric, report: AuditReport, request: Request, hosts: tuple[str, ...], *, run: Run, guard: Guard
) -> Play:
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
        hosts=hosts,
        extra_vars=_consent(request, [host for host in hosts if guard.consents(host)])
        | {
            "packages_timeout_s": max(PACKAGES_SECONDS, request.step_seconds),
            "gpufab_run": {
                "id": run.id,
                "user": run.user,
                "spec": run.spec,
                "claimed": guard.claimed,
                "seconds": request.step_seconds,
            },
        },
        check=request.check,
        forks=request.forks,
        connect_seconds=request.connect_seconds,
        step_seconds=request.step_seconds,
    )


def _consent(request: Request, granted: Iterable[str]) -> dict[str, Any]:
    """What the operator has consented to now, for each host, and nothing else: extra variables beat all others, also
    the role variables that a site may have set for plain Ansible.
    """
    told = {name: f"{{{{ gpufab_{name} }}}}" for name in CONSENT}
    return {
        "gpufab_granted": dict.fromkeys(granted, sorted(impact.value for impact in request.allow)),
        "gpufab_allow": "{{ gpufab_granted[inventory_hostname] | default([]) }}",
        "gpufab_busy_hosts": sorted(request.busy_ok),
        "gpufab_busy_ok": "{{ inventory_hostname in gpufab_busy_hosts }}",
        **{f"{role(feature)}_{name}": value for feature in FEATURES for name, value in told.items()},
    }
