"""What a module tells Ansible."""

import json

import pytest

from gpufab_cli.module_utils import ansible_module
from gpufab_cli.module_utils.change import Step
from gpufab_cli.module_utils.converge import Outcome, Status, StepResult
from gpufab_cli.module_utils.node.feature import Node


class LeftError(Exception):
    """The module has left."""


class Module:
    check_mode = False

    def __init__(self):
        self.params = {"features": [], "allow": [], "busy_ok": False, "run": {}}
        self.warnings = []

    def warn(self, text):
        self.warnings.append(text)

    def exit_json(self, **result):
        json.dumps(result)
        raise LeftError("ok")

    def fail_json(self, msg, **_):
        raise LeftError(msg)


def ran(monkeypatch, *statuses):
    steps = tuple(StepResult("node", Step(f"step {s.value}", ()), s, "why") for s in statuses)
    monkeypatch.setattr(ansible_module, "converge", lambda *_: Outcome(steps))
    module = Module()
    with pytest.raises(LeftError) as left:
        ansible_module.run(module, Node())
    return module.warnings, str(left.value)


def test_what_was_made_needs_no_words(monkeypatch):
    assert ran(monkeypatch, Status.MADE) == ([], "ok")


def test_what_is_held_back_ends_well_and_is_said_all_the_same(monkeypatch):
    words = "not made: step refused: refused: why; step busy: busy: why; step blocked: blocked: why"
    assert ran(monkeypatch, Status.MADE, Status.REFUSED, Status.BUSY, Status.BLOCKED) == ([words], "ok")


def test_what_failed_fails(monkeypatch):
    assert ran(monkeypatch, Status.FAILED) == ([], "step failed: failed: why")
