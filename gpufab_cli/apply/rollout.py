"""An apply over many hosts: a canary first, then batches; the next begins only when the last one is fit.

A batch is fit when its audit is clean for what was applied, :mod:`gpufab_cli.verify` passes on it, and its error
counters stand still for a while. Hosts that are drained for it are given back after the first two, for idle ports count
no errors. One that is worse stays drained.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from gpufab_cli.apply.ansible import Listener
from gpufab_cli.apply.apply import (
    ApplyReport,
    Audit,
    Outcome,
    Request,
    Runner,
    Stop,
    apply,
    hosts_with_work,
)
from gpufab_cli.apply.batches import Portions, batches
from gpufab_cli.apply.drain import Service
from gpufab_cli.apply.regressions import proves_nothing, worse
from gpufab_cli.audit.audit import AuditReport
from gpufab_cli.audit.judge import State
from gpufab_cli.compile.fabric import Fabric
from gpufab_cli.errors import GpufabError
from gpufab_cli.fabric.hostlist import fold
from gpufab_cli.module_utils.converge import Status
from gpufab_cli.module_utils.journal import Run

SETTLE_SECONDS = 15.0
"""What looks worse is looked at once more after so long: a link that was flapped takes seconds to train."""

UNSEEN = "not begun: without a snapshot nobody knows whether it has to be drained first"

KILLED = "an apply was killed that had drained it, and its audit is not clean"

Judge = Callable[[tuple[str, ...]], Mapping[str, str]]
"""Looks at hosts; those that are not fit, and why."""


@dataclass(frozen=True)
class Ways:
    """How an apply reaches out: what a test replaces.

    Attributes:
        verify: proves that hosts are as declared; None: nobody asks for it.
        soak: watches the error counters of hosts for a while; None: likewise.
        tell: says on the terminal what is going on.
    """

    audit: Audit
    runner: Runner
    listen: Listener
    verify: Judge | None = None
    soak: Judge | None = None
    tell: Callable[[str], None] = lambda _: None
    sleep: Callable[[float], None] = time.sleep


def rollout(
    fabric: Fabric, request: Request, portions: Portions, *, ways: Ways, service: Service, run: Run
) -> ApplyReport:
    """Bring the fabric to what is declared, batch by batch, and stop at the first that is worse for it.

    A dry run takes all hosts at once: it disturbs none.
    """
    report = ways.audit(fabric)
    if request.check:
        return apply(fabric, request, audit=ways.audit, runner=ways.runner, listen=ways.listen, run=run, report=report)
    return _Rollout(fabric, request, ways, service, run, report).go(portions)


@dataclass
class _Rollout:
    fabric: Fabric
    request: Request
    ways: Ways
    service: Service
    run: Run
    report: AuditReport
    outcomes: dict[str, Outcome] = field(default_factory=dict)
    left_drained: dict[str, str] = field(default_factory=dict)
    rounds: int = 0

    def go(self, portions: Portions) -> ApplyReport:
        hosts = hosts_with_work(self.fabric, self.report, self.request)
        self._take_up([host for host in self.fabric.wants if host not in hosts])
        hosts = self._seen(hosts)
        planned = batches(hosts, portions, frozenset(host for host in hosts if self.report.hosts[host].failure))
        stop = None
        for number, batch in enumerate(planned):
            is_canary = number == 0 and len(planned) > 1
            if len(planned) > 1:
                name = "canary" if is_canary else f"batch {number + 1}"
                self.ways.tell(f"{name} of {len(planned)}: {fold(batch)}")
            rest = tuple(host for later in planned[number + 1 :] for host in later)
            bad = self._batch(batch, is_canary=is_canary, is_last=not rest)
            if bad:
                stop = Stop(bad, rest)
                break
        return ApplyReport(self.run, False, self.rounds, self.outcomes, self.report, planned, stop, self.left_drained)

    def _take_up(self, hosts: Iterable[str]) -> None:
        """Hosts without work that an apply had drained when it was killed."""
        drained = self.service.drained(hosts)
        fit = {host for host in drained if self.report.hosts[host].state is State.IN_SYNC}
        self.left_drained |= {host: KILLED for host in drained if host not in fit}
        self._give_back(fit)

    def _seen(self, hosts: tuple[str, ...]) -> tuple[str, ...]:
        """The hosts of which it is known whether they have to be drained."""
        if not (self.service.managed and self.request.allow):
            return hosts
        unseen = [host for host in hosts if self.report.hosts[host].failure is not None]
        self.outcomes |= {host: Outcome(problem=UNSEEN, unreachable=True) for host in unseen}
        return tuple(host for host in hosts if host not in unseen)

    def _batch(self, batch: tuple[str, ...], *, is_canary: bool, is_last: bool) -> Mapping[str, str]:
        """Apply to some hosts; those that are worse for it."""
        before, part = self.report.only(batch), self.fabric.only(batch)
        done = self._apply(part, before)
        self.outcomes |= done.outcomes
        self.rounds = max(self.rounds, done.rounds)
        self.report = self.report.updated(done.audit)
        bad = self._worse(part, before, done.outcomes) | self._unproven(batch, done.outcomes)
        if bad:
            self.ways.tell(f"worse than before: {fold(bad)}")
        self._leave(bad)
        self._give_back([host for host in batch if host not in bad])
        if is_canary and not bad:
            bad = proves_nothing(batch, done.outcomes)
        return bad if bad or is_last else self._soaked(done.outcomes)

    def _apply(self, part: Fabric, before: AuditReport) -> ApplyReport:
        ways = self.ways
        return apply(
            part,
            self.request,
            audit=ways.audit,
            runner=ways.runner,
            listen=ways.listen,
            run=self.run,
            report=before,
            drain=self._drain,
        )

    def _drain(self, hosts: Iterable[str]) -> Mapping[str, str]:
        chosen = tuple(hosts)
        if self.service.managed and chosen:
            self.ways.tell(f"draining {fold(chosen)}")
        return self.service.drain(chosen)

    def _worse(self, part: Fabric, before: AuditReport, outcomes: Mapping[str, Outcome]) -> dict[str, str]:
        found = worse(before, self.report, outcomes)
        if not found or any(outcomes[host].problem for host in found):
            return found
        self.ways.tell(f"{fold(found)} may be worse than before; looking again in {SETTLE_SECONDS:.0f} s")
        self.ways.sleep(SETTLE_SECONDS)
        self.report = self.report.updated(self.ways.audit(part))
        return worse(before, self.report, outcomes)

    def _unproven(self, batch: tuple[str, ...], outcomes: Mapping[str, Outcome]) -> dict[str, str]:
        """Hosts on which something was made and of which the audit knows no fault, but verify does."""
        hosts = tuple(h for h in batch if _made(outcomes.get(h)) and self.report.hosts[h].state is State.IN_SYNC)
        if self.ways.verify is None or not hosts:
            return {}
        self.ways.tell(f"verifying {fold(hosts)}")
        try:
            return dict(self.ways.verify(hosts))
        except GpufabError as error:
            return dict.fromkeys(hosts, f"verify: {error.message}")

    def _soaked(self, outcomes: Mapping[str, Outcome]) -> Mapping[str, str]:
        hosts = tuple(host for host, outcome in outcomes.items() if _made(outcome, disturbing=True))
        if self.ways.soak is None or not hosts:
            return {}
        self.ways.tell(f"watching the error counters of {fold(hosts)}")
        return self.ways.soak(hosts)

    def _leave(self, bad: Mapping[str, str]) -> None:
        drained = self.service.drained(bad)
        self.service.leave(drained)
        self.left_drained |= {host: bad[host] for host in drained}

    def _give_back(self, hosts: Iterable[str]) -> None:
        drained = self.service.drained(hosts)
        if drained and self.service.managed:
            self.ways.tell(f"giving back {fold(drained)}")
        failed = self.service.resume(drained)
        self.left_drained |= {host: f"resume: {why}" for host, why in failed.items()}


def _made(outcome: Outcome | None, *, disturbing: bool = False) -> bool:
    steps = outcome.made.values() if outcome is not None else ()
    return any(result.status is Status.MADE and (result.step.impact or not disturbing) for result in steps)
