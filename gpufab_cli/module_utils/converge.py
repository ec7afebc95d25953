"""Bring one feature of a node to its wish: plan, ask for consent, make each step, read it back, undo what failed.

Apply, check mode and restore all come through :func:`converge`, under one lock a node.
"""

import enum
from dataclasses import dataclass, field, replace
from typing import Any, Dict, FrozenSet, Iterable, List, Mapping, Optional, Tuple, Union

from . import access, before, claim, desired, idle, journal, planning, record
from .change import Change, Finding, Impact, Path, Pending, Plan, Step, Unknown
from .devices import Devices, renamed
from .devices import gather as gather_devices
from .feature import Applies
from .host import NODE_LOCK, Host, HostError
from .snapshot import Snapshot
from .texts import blame

LOCK = NODE_LOCK
LOCK_SECONDS = 120.0


class Status(str, enum.Enum):
    """How a step ended."""

    MADE = "made"
    WOULD_MAKE = "would-make"
    REFUSED = "refused"
    BUSY = "busy"
    BLOCKED = "blocked"
    UNKNOWN = "unknown"
    FAILED = "failed"
    NOT_BEGUN = "not-begun"


@dataclass(frozen=True)
class Order:
    """How a feature is to be converged: dry or real, with which consents, on whose behalf."""

    check: bool = False
    allow: FrozenSet[Impact] = frozenset()
    busy_ok: bool = False
    restore: bool = False
    """Nobody is there to consent or to look: the kept wish is not written anew, remembered management ports are left
    alone, no device holds up another, and nothing waits for a disk that cannot be written."""
    run: journal.Run = field(default_factory=journal.Run)
    claimed: bool = False
    """The run has claimed the node, and makes a step with impact only as long as it has."""


@dataclass(frozen=True)
class StepResult:
    """A step and how it ended; ``reason`` says why when it was not made."""

    feature: str
    step: Step
    status: Status
    reason: str = ""


@dataclass(frozen=True)
class Outcome:
    """Everything that became of a plan."""

    steps: Tuple[StepResult, ...] = ()
    pending: Tuple[Pending, ...] = ()
    findings: Tuple[Finding, ...] = ()
    unlogged: str = ""
    """Why journal and record lack what a restore did, where they do."""

    @property
    def changed(self) -> bool:
        """Whether anything was, or in check mode would be, changed."""
        return any(result.status in (Status.MADE, Status.WOULD_MAKE) for result in self.steps)

    def failures(self, check: bool) -> Tuple[StepResult, ...]:
        """The steps that make a run fail. Not knowing fails a real run only: a dry run has done all it can."""
        bad = {Status.FAILED, Status.NOT_BEGUN} | (set() if check else {Status.UNKNOWN})
        return tuple(result for result in self.steps if result.status in bad)


def converge(host: Host, feature: Applies, want: Any, order: Order) -> Outcome:
    """Bring the feature to its wish as far as the order allows. A dry run takes no lock and writes nothing.

    Raises:
        BusyLockError: another apply or restore has held the node for too long.
        HostError: the journal or record cannot be written, so nothing more is begun.
    """
    if order.check:
        return look(host, feature, want, order)[0]
    with host.lock(LOCK, LOCK_SECONDS):
        return _Pass(host, feature, want, order).outcome()


def look(host: Host, feature: Applies, want: Any, order: Order) -> Tuple[Outcome, Snapshot]:
    """A dry run, and the look at the node that decided it, for whoever goes on from there."""
    dry = _Pass(host, feature, want, replace(order, check=True))
    return dry.outcome(), dry.snapshot


def held_back(host: Host, feature: Applies, want: Any, order: Order, step: Step) -> Optional[StepResult]:
    """Why a step is not to be made, if it is not: for one whose impact shows only when it is about to be made."""
    return _Pass(host, feature, want, order).held_back(step)


class _Pass:
    """One pass over one feature's plan."""

    def __init__(self, host: Host, feature: Applies, want: Any, order: Order) -> None:
        self._host, self._feature, self._want, self._order = host, feature, want, order
        self._wants = {feature.name: want}
        self.snapshot: Snapshot = planning.take(host, {feature.name: feature}, self._wants)
        # At boot no SSH session and no route shows yet which port the node depends on.
        self._remembered = record.management_ports(host) if order.restore else frozenset()
        self._log = journal.Log(host, order.run, feature.name, may_be_lost=order.restore)

    def outcome(self) -> Outcome:
        """Take every step in order; after one that failed none is begun, in a restore none of the same device."""
        plan = self._plan()
        if not self._order.check:
            self._prepare(plan)
        results: List[StepResult] = []
        for step in plan.steps:
            results += self._taken(step, results)
        if not self._order.check:
            self._note(results, plan)
        plan = self._plan_after(results, plan)
        return Outcome(tuple(results), plan.pending, plan.findings, self._log.lost)

    def _plan(self) -> Plan:
        return planning.plan(self._feature, self.snapshot, self._want, keep=not self._order.restore)

    def _prepare(self, plan: Plan) -> None:
        if not self._order.restore:
            # Before the wish is kept: a run that is killed must not leave a restore that knows the one alone.
            record.note_management_ports(self._host, self.snapshot.devices)
        self._log.settle(self.snapshot.cut_off, plan.steps)

    def _plan_after(self, results: List[StepResult], plan: Plan) -> Plan:
        """The plan once more, where a restore has changed something: nobody audits after it, as is done after an apply.

        What goes wrong now takes away nothing that was done: what was found before is told then.
        """
        if not self._order.restore or not any(r.status in (Status.MADE, Status.FAILED) for r in results):
            return plan
        try:
            self.snapshot = planning.take(self._host, {self._feature.name: self._feature}, self._wants)
            return self._plan()
        except Exception:
            return plan

    def _note(self, results: List[StepResult], plan: Plan) -> None:
        made = [c for result in results if result.status is Status.MADE for c in result.step.changes]
        if made or plan.pending:
            name, boot_id = self._feature.name, self.snapshot.boot_id
            self._log.keep(lambda: record.note(self._host, name, boot_id, made, plan.pending))

    def _result(self, step: Step, status: Status, reason: str = "") -> StepResult:
        return StepResult(self._feature.name, step, status, reason)

    def _not_begun(self, step: Step, results: List[StepResult]) -> Optional[StepResult]:
        """Whether an earlier failure keeps the step from being begun.

        What one port refuses the next is likely to refuse too, after its link has flapped for it, and an operator is
        there to look: an apply ends. A restore has nobody, and a port that is not restored costs its jobs.
        """
        failed = [result.step for result in results if result.status is Status.FAILED]
        if not self._order.restore:
            return self._result(step, Status.NOT_BEGUN, "an earlier step failed") if failed else None
        if step.device and any(other.device == step.device for other in failed):
            return self._result(step, Status.NOT_BEGUN, f"an earlier step of {step.device} failed")
        return None

    def _taken(self, step: Step, before_it: List[StepResult]) -> List[StepResult]:
        """How a step ended; in a restore, of one that does not go as a whole and may be taken apart, each device's."""
        parts = _parts(step) if self._order.restore else (step,)
        if len(parts) == 1:
            (step,) = parts
        held = self._not_begun(step, before_it)
        result = held if held is not None else self._take_alone(step)
        if len(parts) == 1 or result.status in (Status.MADE, Status.WOULD_MAKE):
            return [result]
        return [self._take_alone(part) for part in parts]

    def _take_alone(self, step: Step) -> StepResult:
        """Take a step; in a restore, whatever goes wrong with it is its own failure and ends no other's turn."""
        if not self._order.restore:
            return self._take(step)
        try:
            return self._take(step)
        except HostError as error:
            return self._result(step, Status.FAILED, str(error))
        except Exception as error:
            return self._result(step, Status.FAILED, f"unexpected {blame(error)}")

    def _take(self, step: Step) -> StepResult:
        held = self.held_back(step)
        if held is not None:
            return held
        return self._result(step, Status.WOULD_MAKE) if self._order.check else self._make(step)

    def held_back(self, step: Step) -> Optional[StepResult]:
        """Why the step is not to be made, if it is not."""
        if step.unknowns:
            reasons = dict.fromkeys(change.current.reason for change in step.unknowns)
            return self._result(step, Status.UNKNOWN, "; ".join(reasons))
        if step.blocked:
            return self._result(step, Status.BLOCKED, step.blocked)
        missing = sorted(impact.value for impact in (step.impact | self._remembered_impact(step)) - self._order.allow)
        if missing:
            return self._result(step, Status.REFUSED, "needs --allow " + ",".join(missing))
        if step.impact and not self._order.restore:
            theirs = claim.in_the_way(self._host, self._order.run.id, needed=self._order.claimed)
            if theirs:
                return self._result(step, Status.BUSY, theirs)
        if step.impact and not self._order.busy_ok:
            return self._busy(step)
        return None

    def _remembered_impact(self, step: Step) -> FrozenSet[Impact]:
        ports = self._remembered
        is_port = bool(step.device) and step.device not in {gpu.pci for gpu in self.snapshot.devices.gpus}
        is_one = is_port if isinstance(ports, Unknown) else step.device in ports
        return frozenset({Impact.MANAGEMENT_PORT}) if is_one else frozenset()

    def _busy(self, step: Step) -> Optional[StepResult]:
        users = self._users_in_the_way(step)
        if isinstance(users, Unknown):
            return self._result(step, Status.BUSY, f"cannot tell whether the node is idle: {users.reason}")
        return self._result(step, Status.BUSY, "; ".join(users)) if users else None

    def _users_in_the_way(self, step: Step) -> Union[Tuple[str, ...], Unknown]:
        """Operators change idle nodes; a restore mends a device that lost its settings, whoever uses the others.

        Asked anew for each step: the steps before it take their time, and a job begins in less.
        """
        if self._order.restore:
            users = idle.device_users(self._host, step.device)
        else:
            users = idle.users(self._host, self.snapshot.devices, step.device)
        if isinstance(users, Unknown) or isinstance(step.users, Unknown):
            return users if isinstance(users, Unknown) else step.users
        return tuple(dict.fromkeys(step.users + users))

    def _make(self, step: Step) -> StepResult:
        before.forget(self._host, step)  # of a run that was killed
        result = self._attempt(step)
        before.forget(self._host, step)
        return result

    def _attempt(self, step: Step) -> StepResult:
        """Make the step, or undo it. How it ended is written down last: a log that is full by then stops no undo."""
        self._log.event(step, "begin")
        problem = self._apply_and_read_back(step)
        if problem is None:
            self._log.event(step, "made")
            return self._result(step, Status.MADE)
        rest = self._undo(step) if step.undoable else ""
        self._log.event(step, "failed", problem)
        if not step.undoable:
            return self._result(step, Status.FAILED, problem)
        self._log.event(step, "not-undone" if rest else "undone", rest or "")
        after = f"; {rest}" if rest else "; undone"
        return self._result(step, Status.FAILED, problem + after)

    def _apply_and_read_back(self, step: Step) -> Optional[str]:
        """What went wrong, if anything: a write that failed, or a value that did not stick."""
        try:
            self._apply(step)
            missed = self._remaining(step, made=True)
        except HostError as error:
            return str(error)
        except Exception as error:  # a mistake of gpufab's own must not leave a step half made either
            return f"unexpected {type(error).__name__}: {error}"
        if not missed:
            return None
        if Impact.FIRMWARE_RESET in step.impact:
            name, boot_id = self._feature.name, self.snapshot.boot_id
            self._log.keep(lambda: record.note_tried(self._host, name, boot_id, missed.values()))
            return "did not become current, firmware reset or cold boot needed: " + _listed(missed.values())
        return "did not stick: " + _listed(missed.values())

    def _apply(self, step: Step) -> None:
        if step.name.startswith(desired.PERSIST + " "):
            desired.persist(self._host, self._feature.name, self._want, step)
        elif step.name == access.STEP:
            access.apply(step, self._host)
        else:
            self._feature.apply(step, self._host)

    def _remaining(self, step: Step, *, made: bool) -> Dict[Path, Change]:
        """What of the step is not as wanted when its own devices are read again.

        Of a value that cannot be read back the record tells what it is: ``made`` says whether to go by this step.
        """
        name = self._feature.name
        old = self.snapshot.records[name]
        records = {name: record.with_made(old, step.changes, self.snapshot.boot_id) if made else old}
        want = self._feature.only(self._want, step.device)
        seen = self._feature.gather(self._host, self._devices_now(), want)
        kept = {name: desired.digest(self._host, name)} if self._feature.restored else {}
        snapshot = replace(self.snapshot, seen={name: seen}, desired=kept, records=records)
        plan = self._feature.plan(snapshot, want)
        steps = plan.steps
        if step.name == access.STEP:
            steps = access.added(Plan(), access.read(self._host)).steps
        elif step.name.startswith(desired.PERSIST + " "):
            persist = desired.persist_step(name, self._want, kept.get(name))
            steps = (persist,) if persist is not None else ()
        silent = (c for c in step.changes if c.path[0] in plan.skipped)
        left = {c.path: replace(c, current=Unknown(plan.skipped[c.path[0]])) for c in silent}
        return {**left, **{c.path: c for again in steps if again.name == step.name for c in again.changes}}

    def _devices_now(self) -> Devices:
        """The devices by the names that they have now: one may have been renamed while a step was made."""
        if renamed(self._host, self.snapshot.devices):
            self.snapshot = replace(self.snapshot, devices=gather_devices(self._host))
        return self.snapshot.devices

    def _undo(self, step: Step) -> Optional[str]:
        """Bring back the old values in reverse order; what could not be brought back, in words."""
        try:
            back = self._way_back(step, made=True)
        except Exception:  # what cannot be read is taken as set: every old value is written
            back = _reversed(step, {})
        if not back.changes:
            return None
        try:
            self._apply(back)
            left = self._way_back(step, made=False).changes
        except HostError as error:
            return f"could not be undone: {error}"
        except Exception as error:  # whatever an undo runs into is told and journalled, and the other steps go on
            return f"could not be undone: unexpected {type(error).__name__}: {error}"
        return "could not be undone: " + _listed(left) if left else None

    def _way_back(self, step: Step, *, made: bool) -> Step:
        """The step from what is there now to what was there before; what is unknown now is taken as set."""
        return _reversed(step, {path: c.current for path, c in self._remaining(step, made=made).items() if c.known})


def _reversed(step: Step, now: Mapping[Path, Any]) -> Step:
    changes = [
        replace(change, current=now.get(change.path, change.desired), desired=change.current)
        for change in reversed(step.changes)
    ]
    changes = [change for change in changes if change.current != change.desired]
    return replace(step, changes=tuple(changes), undoes=True)


def _parts(step: Step) -> Tuple[Step, ...]:
    """A step, or one a device where its devices do not need one another."""
    if not step.apart:
        return (step,)
    devices = dict.fromkeys(change.path[0] for change in step.changes)
    own = {device: tuple(c for c in step.changes if c.path[0] == device) for device in devices}
    return tuple(replace(step, changes=changes, device=device) for device, changes in own.items())


def _listed(changes: Iterable[Change]) -> str:
    return ", ".join(map(_words, changes))


def _words(change: Change) -> str:
    return f"{'/'.join(change.path)} is {change.current}, not {change.desired}"
