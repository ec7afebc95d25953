"""What every Ansible module of a feature does: arguments in, converge, result out. Imports nothing of Ansible."""

import dataclasses
from typing import Any, Dict, Iterable, List, Mapping

from .arguments import argument_spec
from .change import Change, Impact
from .converge import Order, Outcome, Status, StepResult, converge
from .feature import Applies
from .host import Host, HostError
from .journal import Run
from .schema import SchemaError, decode, encode
from .time_limit import time_limit

CONSENT: Dict[str, Any] = {
    "allow": {
        "type": "list",
        "elements": "str",
        "choices": [impact.value for impact in Impact],
        "default": [],
        "description": (
            "Impacts that are consented to; a step with any other is reported and not made. "
            "gpufab apply gives those of its own --allow, whatever a site has set."
        ),
    },
    "busy_ok": {
        "type": "bool",
        "default": False,
        "description": "Make steps with impact although the node is in use. gpufab apply gives its own --busy-ok.",
    },
    "run": {
        "type": "dict",
        "default": {},
        "description": "Who asks, for the journal on the node, and what gpufab apply tells its modules besides.",
        "options": {
            "id": {"type": "str", "default": "", "description": "Id of the run."},
            "user": {"type": "str", "default": "", "description": "Who started it."},
            "spec": {"type": "str", "default": "", "description": "Digest of fabric.yml and its lock."},
            "claimed": {
                "type": "bool",
                "default": False,
                "description": "Make steps with impact only while this run's claim on the node lives.",
            },
            "seconds": {
                "type": "int",
                "default": 0,
                "description": "After so many seconds the module ends itself and fails; 0 waits for ever.",
            },
        },
    },
}


def arguments(feature: Applies) -> Dict[str, Any]:
    """The argument spec of a feature's module, without the documentation Ansible does not take."""
    return {name: _bare(argument) for name, argument in {**argument_spec(feature.want_type), **CONSENT}.items()}


def _bare(argument: Mapping[str, Any]) -> Dict[str, Any]:
    bare = {key: value for key, value in argument.items() if key != "description"}
    if "options" in bare:
        bare["options"] = {name: _bare(option) for name, option in bare["options"].items()}
    return bare


def run(module: Any, feature: Applies) -> None:
    """Converge the feature as an AnsibleModule's arguments say, and leave through it."""
    params = dict(module.params)
    consent = {key: params.pop(key) for key in CONSENT}
    try:
        want = decode(feature.want_type, without_none(params), feature.name)
        with time_limit(seconds_of(consent)):
            outcome = converge(Host(), feature, want, order_of(consent, module.check_mode))
    except (SchemaError, HostError) as error:
        module.fail_json(msg=str(error))
        return
    finish(module, outcome)


def finish(module: Any, outcome: Outcome, **more: Any) -> None:
    """Leave through the AnsibleModule with what became of the steps, and ``more``."""
    result = {**module_result(outcome), **more}
    held_back = [r for r in outcome.steps if r.status in _HELD_BACK]
    if held_back:  # "ok" in Ansible's recap is not to read as done
        module.warn(f"not made: {_words(held_back)}")
    failures = outcome.failures(module.check_mode)
    if failures:
        module.fail_json(msg=_words(failures), **result)
    module.exit_json(**result)


_HELD_BACK = (Status.REFUSED, Status.BUSY, Status.BLOCKED)


def _words(results: Iterable[StepResult]) -> str:
    return "; ".join(f"{r.step.name}: {r.status.value}: {r.reason}" for r in results)


def order_of(consent: Mapping[str, Any], check: bool) -> Order:
    """The order that a module's arguments come to."""
    run = consent["run"] or {}
    return Order(
        check=check,
        allow=frozenset(Impact(name) for name in consent["allow"]),
        busy_ok=consent["busy_ok"],
        run=Run(**{key: run.get(key) or "" for key in ("id", "user", "spec")}),
        claimed=bool(run.get("claimed")),
    )


def seconds_of(consent: Mapping[str, Any]) -> int:
    """How long the module may take; 0: for ever."""
    return int((consent["run"] or {}).get("seconds") or 0)


def without_none(value: Any) -> Any:
    """Ansible fills in None for options that were not given; for the core None is said by leaving out."""
    if isinstance(value, dict):
        return {key: without_none(item) for key, item in value.items() if item is not None}
    return [without_none(item) for item in value] if isinstance(value, list) else value


def module_result(outcome: Outcome) -> Dict[str, Any]:
    """The module's result: what became of each step, and a diff of the values."""
    return {
        "changed": outcome.changed,
        "steps": [_step(result) for result in outcome.steps],
        "pending": [encode(item) for item in outcome.pending],
        "findings": [encode(item) for item in outcome.findings],
        "diff": _diff(outcome),
    }


def _step(result: StepResult) -> Dict[str, Any]:
    fields = {item.name: getattr(result.step, item.name) for item in dataclasses.fields(result.step)}
    return {**encode(fields), "feature": result.feature, "status": result.status.value, "reason": result.reason}


def _diff(outcome: Outcome) -> Dict[str, str]:
    """Every value that was or would be changed, and those that are wanted but cannot be read."""
    shown = (Status.MADE, Status.WOULD_MAKE, Status.UNKNOWN)
    changes: List[Change] = [c for result in outcome.steps if result.status in shown for c in result.step.changes]
    return {
        "before": "".join(f"{_name(change)}: {_show(change.current)}\n" for change in changes),
        "after": "".join(f"{_name(change)}: {_show(change.desired)}\n" for change in changes),
    }


def _name(change: Change) -> str:
    return " ".join(change.path)


def _show(value: Any) -> str:
    if isinstance(value, tuple):
        return ",".join(_show(item) if not isinstance(item, tuple) else ":".join(map(str, item)) for item in value)
    return str(value)
