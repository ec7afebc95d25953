"""How gpufab's own program comes to a node: as an argument of its module."""

import json
from copy import deepcopy
from types import SimpleNamespace

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from gpufab_cli.action.node import ActionModule
from gpufab_cli.module_utils import ansible_module, archive
from gpufab_cli.module_utils.node import module as node_module
from gpufab_cli.module_utils.node.feature import Node
from gpufab_cli.module_utils.node.files import PROGRAM, UDEV_RULE
from gpufab_cli.module_utils.node.module import arguments
from gpufab_cli.module_utils.node.program import PACKED, pack
from tests.fakes import FakeHost


class LeftError(Exception):
    """The module has left, with its result."""


class Module:
    """An AnsibleModule as far as the core knows it; arguments are checked as Ansible does."""

    def __init__(self, args, check_mode):
        checked = ArgumentSpecValidator(deepcopy(arguments(Node()))).validate(args)
        assert checked.error_messages == []
        self.params, self.check_mode = checked.validated_parameters, check_mode

    def warn(self, text):
        pass

    def exit_json(self, **result):
        raise LeftError({**result, "invocation": {"module_args": self.params}})

    def fail_json(self, msg, **result):
        self.exit_json(failed=True, msg=msg, **result)


def left(host, module):
    """What the module leaves with."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ansible_module, "Host", lambda: host)
        with pytest.raises(LeftError) as end:
            node_module.run(module, Node())
    (result,) = end.value.args
    return result


class Action(ActionModule):
    """The plugin, whose module runs here on a node in memory; ``more`` changes what is sent there."""

    def __init__(self, host, *, check=False, more=None):
        self.task = SimpleNamespace(args={"features": []}, async_val=0, check_mode=check)
        connection = SimpleNamespace(_shell=SimpleNamespace(tmpdir=""))
        super().__init__(self.task, connection, None, None, None)
        self.host, self.more = host, more or {}

    def _execute_module(self, *, module_args, task_vars, wrap_async):
        self.sent = {**module_args, **self.more}
        return left(self.host, Module(self.sent, self.task.check_mode))


def steps(result):
    return [(step["name"], step["status"]) for step in result["steps"]]


def current():
    """A node that has all."""
    host = FakeHost()
    Action(host).run()
    return host


def test_a_node_without_the_program_gets_it_and_nothing_shows_it():
    host = FakeHost()
    action = Action(host)
    result = action.run()
    assert (result["changed"], steps(result)) == (True, [("node files", "made"), ("node order", "made")])
    assert host.files[PROGRAM] == archive.build()
    assert len(json.dumps(result)) < 10_000  # with the arguments that -vvv shows
    assert action.task.args == {"features": []}  # which Ansible hands to callbacks


def test_a_node_that_has_all_is_left_alone():
    host = current()
    host.writes.clear()
    result = Action(host).run()
    assert (result["changed"], result["steps"], host.writes) == (False, [], [])


def test_an_old_program_is_replaced_and_a_dry_run_says_so_without_it():
    host = current()
    host.files[PROGRAM] = b"of another release"
    dry = Action(host, check=True)
    said = dry.run()["diff"]
    assert (PACKED in dry.sent, host.files[PROGRAM]) == (False, b"of another release")
    assert said == Action(host).run()["diff"] != {"before": "", "after": ""}
    assert host.files[PROGRAM] == archive.build()


@pytest.mark.parametrize("packed", ["", pack(b"another")])
def test_what_comes_is_held_against_what_was_announced_before_anything_is_written(packed):
    host = FakeHost()
    result = Action(host, more={PACKED: packed}).run()
    assert (result["failed"], steps(result)) == (True, [("node files", "failed"), ("node order", "not-begun")])
    assert "is not the program that was announced" in result["msg"]
    assert not {PROGRAM, UDEV_RULE} & set(host.files)


def test_the_module_alone_knows_no_program_to_keep():
    for check in (False, True):
        assert "with its action plugin" in left(FakeHost(), Module({"features": []}, check))["msg"]
