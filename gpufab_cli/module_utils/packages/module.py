"""What the modules of package sets do: say what the tasks are to do, and afterwards whether it is done.

A first call plans and, in a real run, rehearses and then writes gpufab's own files: source, key and pins. What it
returns as ``work`` are the parameters of the tasks, which are the package manager's. A second call is given the steps
that were to be made, has systemd know of units that came, and proves each step. Imports nothing of Ansible.
"""

from dataclasses import replace
from typing import Any, Dict, Iterable, List, Mapping, Optional, Tuple

from .. import ansible_module, journal, record
from ..ansible_module import CONSENT, finish, order_of, seconds_of, without_none
from ..change import Step
from ..converge import Order, Outcome, Status, StepResult, held_back, look
from ..host import Host, HostError
from ..schema import SchemaError, decode
from ..time_limit import time_limit
from .transaction import RefusedError
from .work import Work, declare, work

MADE: Dict[str, Any] = {
    "made": {
        "type": "list",
        "elements": "dict",
        "default": [],
        "description": "Steps that the tasks since the first call were to make; each is proven to be made.",
    }
}
RETURNED = {
    "todo": ("bool", "Whether there is work for the tasks that follow."),
    "work": ("dict", "The parameters of these tasks; empty where there is none, and in check mode."),
}


def arguments(feature: Any) -> Dict[str, Any]:
    """The argument spec of a set's module."""
    made = {key: value for key, value in MADE["made"].items() if key != "description"}
    return {**ansible_module.arguments(feature), "made": made}


def run(module: Any, feature: Any) -> None:
    """Plan or prove, as an AnsibleModule's arguments say, and leave through it."""
    params = dict(module.params)
    consent = {key: params.pop(key) for key in CONSENT}
    made = params.pop("made")
    try:
        want = decode(feature.want_type, without_none(params), feature.name)
        steps: Tuple[Step, ...] = decode(Tuple[Step, ...], made, "made")
        order = order_of(consent, module.check_mode)
        with time_limit(seconds_of(consent)):
            outcome, todo = prove(Host(), feature, want, order, steps) if steps else begin(Host(), feature, want, order)
    except (SchemaError, HostError) as error:
        module.fail_json(msg=str(error))
        return
    finish(module, outcome, todo=todo is not None, work=todo.data if todo else {})


def begin(host: Host, feature: Any, want: Any, order: Order) -> Tuple[Outcome, Optional[Work]]:
    """What would become of each step; in a real run those that are to be made are begun, and left to the work."""
    outcome, snapshot = look(host, feature, want, order)
    steps = tuple(result.step for result in outcome.steps if result.status is Status.WOULD_MAKE)
    if order.check or not steps:
        return outcome, None
    left = [result for result in outcome.steps if result.status is not Status.WOULD_MAKE]
    try:
        todo = work(host, snapshot.seen[feature.name], snapshot.devices, want, steps)
    except RefusedError as error:
        why = f"{error}; nothing was changed"
        left += [StepResult(feature.name, step, Status.FAILED, why) for step in steps]
        return replace(outcome, steps=tuple(left)), None
    held = _held(host, feature, want, order, set(todo.steps) - set(steps))
    if held:
        left += held
        steps = tuple(step for step in steps if step.name not in {result.step.name for result in held})
        if not steps:
            return replace(outcome, steps=tuple(left)), None
        todo = work(host, snapshot.seen[feature.name], snapshot.devices, want, steps)
    for step in todo.steps:
        journal.write(host, order.run, feature.name, step, "begin")
    declare(host, todo)
    return replace(outcome, steps=tuple(left)), todo


def _held(host: Host, feature: Any, want: Any, order: Order, grown: Iterable[Step]) -> List[StepResult]:
    """Of steps whose impact only the rehearsal has shown, those that are not to be made: a repository that offers other
    packages than when its pins were made may have them come with a mere file.
    """
    results = (held_back(host, feature, want, order, step) for step in grown)
    return [result for result in results if result is not None]


def prove(host: Host, feature: Any, want: Any, order: Order, made: Tuple[Step, ...]) -> Tuple[Outcome, Optional[Work]]:
    """Look again, once systemd, which was left alone while packages came and went, knows their units: of what was to be
    made nothing may be left to do.
    """
    host.run("systemctl", "daemon-reload")
    again, snapshot = look(host, feature, want, order)
    left = {result.step.name: result for result in again.steps}
    blind = [finding.evidence for finding in again.findings if finding.unknown]
    results: List[StepResult] = [_proven(feature.name, step, left, blind) for step in made]
    for result in results:
        event = "made" if result.status is Status.MADE else "failed"
        journal.write(host, order.run, feature.name, result.step, event, reason=result.reason)
    done = [c for result in results if result.status is Status.MADE for c in result.step.changes]
    record.note(host, feature.name, snapshot.boot_id, done, again.pending)
    others = [r for r in again.steps if r.step.name not in {s.name for s in made} and r.status is not Status.WOULD_MAKE]
    return replace(again, steps=(*results, *others)), None


def _proven(name: str, step: Step, left: Mapping[str, StepResult], blind: List[str]) -> StepResult:
    """Made is what is no longer planned, unless there is no telling: ``blind`` says what could not be seen."""
    again = left.get(step.name)
    if again is None and blind:
        return StepResult(name, step, Status.FAILED, f"cannot be proven: {blind[0]}")
    if again is None:
        return StepResult(name, step, Status.MADE)
    words = ", ".join(f"{'/'.join(c.path)} is {c.current}, not {c.desired}" for c in again.step.changes)
    return StepResult(name, step, Status.FAILED, f"did not stick: {words}")
