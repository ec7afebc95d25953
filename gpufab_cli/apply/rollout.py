"""An apply over many hosts: a canary first, then batches; the next begins only when the last one is fit.

A batch is fit when its audit is clean for what was applied, :mod:`gpufab_cli.verify` passes on it, and its error
counters stand still for a while. Hosts that are drained for it are given back after the first two, for idle ports count
no errors. One that is worse stays drained.
"""

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from gpufab_cli.apply.ansible import Listener
from gpufab_cli.apply.apply import (
    ApplyReport,
    Audit,
    Kept,
    Outcome,
    Request,
    Runner,
    Stop,
    apply,
    hosts_with_work,
)
from gpufab_cli.apply.batches import Portions, batches
from gpufab_cli.apply.claims import Claims
from gpufab_cli.apply.drain import Service
from gpufab_cli.apply.left import cleared
from gpufab_cli.apply.regressions import Unfit, proves_nothing, unfit
from gpufab_cli.audit.audit import AuditReport
from gpufab_cli.audit.collect import Failed
from gpufab_cli.audit.judge import LEFT_DRAINED, HostReport
from gpufab_cli.audit.judge import State as Verdict
from gpufab_cli.compile.fabric import Fabric
from gpufab_cli.errors import GpufabError
from gpufab_cli.fabric.hostlist import fold
from gpufab_cli.module_utils.converge import Status
from gpufab_cli.module_utils.journal import Run

SETTLE_SECONDS = 15.0
"""What looks worse is looked at once more after so long: a link that was flapped takes seconds to train."""

UNSEEN = "not begun: without a snapshot nobody knows whether it has to be drained first"

NO_WAY = frozenset({Failed.UNREACHABLE, Failed.TIMEOUT})

KILLED = "an apply was interrupted that had drained it, and it is not proven to be in order"

Judge = Callable[[tuple[str, ...]], Mapping[str, str]]
"""Looks at hosts; those that are not fit, and why."""


@dataclass(frozen=True)
class Ways:
    """How an apply reaches out: what a test replaces.

    Attributes:
        claims: on the nodes of the hosts that it disturbs; None: nobody else is about.
        verify: proves that hosts are as declared; None: nobody asks for it.
        soak: watches the error counters of hosts for a while; None: likewise.
        tell: says on the terminal what is going on.
    """

    audit: Audit
    runner: Runner
    listen: Listener
    claims: Claims | None = None
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
        dry = apply(fabric, request, audit=ways.audit, runner=ways.runner, listen=ways.listen, run=run, report=report)
        return replace(dry, left_drained={host: state.words for host, state in service.states.all().items()})
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

    @property
    def claimed(self) -> bool:
        """Whether modules act under this run's claim alone: drained hosts are its own."""
        return self.service.managed and self.ways.claims is not None

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
        for host, state in self.service.states.all().items():  # also those that are not in this apply
            self.left_drained.setdefault(host, state.words)
        return ApplyReport(self.run, False, self.rounds, self.outcomes, self.report, planned, stop, self.left_drained)

    def _take_up(self, hosts: Iterable[str]) -> None:
        """Hosts without work that an apply has drained and not given back: those that were left for the operator stay
        so; of one that was interrupted, what is in order goes back.
        """
        known = self.service.states.all()
        drained = tuple(host for host in hosts if host in known)
        left = {host: known[host].left for host in drained if known[host].left}
        sound = tuple(host for host in drained if host not in left and _in_order(self.report.hosts[host]))
        theirs = self._claim(sound)
        unproven = self._verified(tuple(host for host in sound if host not in theirs))
        self.left_drained |= left | {host: KILLED for host in drained if host not in left}
        fit = [host for host in sound if host not in theirs and host not in unproven]
        for host in fit:
            del self.left_drained[host]
        self._give_back(fit)
        self._release(host for host in sound if host not in fit)

    def _seen(self, hosts: tuple[str, ...]) -> tuple[str, ...]:
        """The hosts that are begun: those that can be reached, and of which it is known whether to drain them.

        One that just let its time limit pass would do so with Ansible as well, and hold up all others.
        """
        unseen: dict[str, str] = {}
        for host in hosts:
            failure = self.report.hosts[host].failure
            if failure is None:
                continue
            if self.service.managed and self.request.allow:
                unseen[host] = UNSEEN
            elif failure.kind in NO_WAY:
                unseen[host] = f"not begun: {failure.kind.value}: {failure.message}"
        self.outcomes |= {host: Outcome(problem=why, unreachable=True) for host, why in unseen.items()}
        return tuple(host for host in hosts if host not in unseen)

    def _batch(self, batch: tuple[str, ...], *, is_canary: bool, is_last: bool) -> Mapping[str, str]:
        """Apply to some hosts; those that are worse for it."""
        before, part = self.report.only(batch), self.fabric.only(batch)
        done = self._apply(part, before)
        self.outcomes |= done.outcomes
        self.rounds = max(self.rounds, done.rounds)
        self.report = self.report.updated(done.audit)
        found = self._unfit(part, before, done.outcomes)
        bad = {host: one.why for host, one in found.items()} | self._unproven(batch, done.outcomes)
        worse = [host for host, one in found.items() if one.worse]
        for words, hosts in (("worse than before", worse), ("not fit", [h for h in bad if h not in worse])):
            if hosts:
                self.ways.tell(f"{words}: {fold(hosts)}")
        self._leave(bad)
        self._give_back([host for host in batch if host not in bad and self._may_go_back(host)])
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
            guard=self,
        )

    def prepare(self, hosts: Iterable[str]) -> Mapping[str, Kept]:
        """Claim and drain hosts that are about to be disturbed, and note it; those that are not to be begun."""
        chosen = tuple(host for host in hosts if not self.consents(host) or not self.service.managed)
        theirs = self._claim(chosen)
        mine = tuple(host for host in chosen if host not in theirs)
        if self.service.managed and mine:
            self.ways.tell(f"draining {fold(mine)}")
        failed = self.service.drain(mine)
        self._release(host for host in failed if not self.service.drained((host,)))
        return {host: Kept(why, theirs=True) for host, why in theirs.items()} | {
            host: Kept(why) for host, why in failed.items()
        }

    def begin(self, hosts: Iterable[str]) -> None:
        """Note that drained hosts are disturbed from now on."""
        self.service.disturb(hosts)

    def consents(self, host: str) -> bool:
        """A host that was not drained is not disturbed, also when that it would be shows only on the node."""
        return not self.service.managed or self.service.is_mine(host)

    def _claim(self, hosts: Iterable[str]) -> dict[str, str]:
        claims, chosen = self.ways.claims, tuple(hosts)
        if claims is None or not chosen:
            return {}
        refused = claims.take(chosen)
        for host, why in refused.items():
            self.ways.tell(f"{host}: {why}")
        return refused

    def _release(self, hosts: Iterable[str]) -> None:
        if self.ways.claims is not None:
            self.ways.claims.release(hosts)

    def _unfit(self, part: Fabric, before: AuditReport, outcomes: Mapping[str, Outcome]) -> dict[str, Unfit]:
        found = unfit(before, self.report, outcomes)
        if not found or any(outcomes[host].problem for host in found):
            return found
        self.ways.tell(f"{fold(found)} may not be fit; looking again in {SETTLE_SECONDS:.0f} s")
        self.ways.sleep(SETTLE_SECONDS)
        self.report = self.report.updated(self.ways.audit(part))
        return unfit(before, self.report, outcomes)

    def _unproven(self, batch: tuple[str, ...], outcomes: Mapping[str, Outcome]) -> dict[str, str]:
        """Hosts on which something was made and of which the audit knows no fault, but verify does."""
        return self._verified(
            tuple(h for h in batch if _made(outcomes.get(h)) and _in_order(self.report.hosts[h])),
        )

    def _verified(self, hosts: tuple[str, ...]) -> dict[str, str]:
        """Those of the hosts that verify does not pass."""
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

    def _may_go_back(self, host: str) -> bool:
        """Whether the host is drained by this run, and not merely held by another, or left by one before."""
        state = self.service.states.read(host)
        outcome = self.outcomes.get(host)
        if state is None or (outcome is not None and outcome.held):
            return state is None
        if self.service.is_mine(host):
            return True
        if not state.left and _in_order(self.report.hosts[host]):
            return not self._claim((host,)) and not self._verified((host,))
        return False

    def _leave(self, bad: Mapping[str, str]) -> None:
        drained = self.service.drained(bad)
        reasons = {host: bad[host] for host in drained}
        self.service.leave(reasons)
        self.left_drained |= reasons
        if self.ways.claims is not None:
            self.ways.claims.leave(drained)
            self._release(host for host in bad if host not in drained)

    def _give_back(self, hosts: Iterable[str]) -> None:
        chosen = tuple(hosts)
        drained = self.service.drained(chosen)
        if drained and self.service.managed:
            self.ways.tell(f"giving back {fold(drained)}")
        failed = self.service.resume(drained)
        self.left_drained |= {host: f"resume: {why}" for host, why in failed.items()}
        given = [host for host in chosen if host not in failed]
        self.report = cleared(self.report, [host for host in given if host in drained])
        self._release(given)
        if failed and self.ways.claims is not None:
            self.ways.claims.leave(failed)


def _in_order(report: HostReport) -> bool:
    """Whether the audit finds nothing wrong but that nobody has given the host back."""
    return replace(report, rows=tuple(row for row in report.rows if row.code != LEFT_DRAINED)).state is Verdict.IN_SYNC


def _made(outcome: Outcome | None, *, disturbing: bool = False) -> bool:
    steps = outcome.made.values() if outcome is not None else ()
    return any(result.status is Status.MADE and (result.step.impact or not disturbing) for result in steps)
