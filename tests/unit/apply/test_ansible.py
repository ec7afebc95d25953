"""What ansible-runner's events are taken for."""

import json
import os
import signal

import pytest

from gpufab_cli.apply import ansible, interrupts
from gpufab_cli.apply.ansible import Play, Said, heard
from gpufab_cli.apply.interrupts import InterruptedApply
from gpufab_cli.errors import GpufabError
from gpufab_cli.intent.needs import LAST_TASK
from gpufab_cli.module_utils.ansible_module import module_result
from gpufab_cli.module_utils.change import ABSENT, Change, Impact, Step, Unknown
from gpufab_cli.module_utils.converge import Outcome, Status, StepResult

CHANGES = (
    Change(("0000:18:00.0", "pfc"), (), (3,), "roce.pfc"),
    Change(("0000:18:00.0", "trust"), Unknown("dcb hangs"), "dscp", "roce.trust"),
    Change(("/etc/x",), ABSENT, "sha256:aa", "node.files"),
)
STEP = Step("roce compute/0", CHANGES, frozenset({Impact.LINK_FLAP, Impact.TRAFFIC}), "0000:18:00.0")
RESULT = StepResult("roce", STEP, Status.REFUSED, "needs --allow link-flap")


def event(kind, result=None, action="gpufab.fabric.roce", host="gpu01"):
    return {"event": kind, "event_data": {"host": host, "task_action": action, "res": result or {}}}


def over_the_wire(*steps):
    return json.loads(json.dumps(module_result(Outcome(steps))))


@pytest.mark.parametrize("kind", ["runner_on_ok", "runner_on_failed"])
def test_steps_arrive_as_they_were_sent(kind):
    said = heard(event(kind, {**over_the_wire(RESULT), "msg": "Task failed: roce compute/0: unknown"}))
    assert said == Said("gpu01", "roce", (RESULT,))


def test_a_module_with_nothing_to_do_says_so():
    assert heard(event("runner_on_ok", over_the_wire())) == Said("gpu01", "roce")


def test_a_failure_without_steps_is_a_problem_in_one_line():
    text = "Setting up x\ndkms: no build\ndpkg: error processing package x (--configure):\n exit status 1\nmore"
    said = heard(event("runner_on_failed", {"msg": "'apt-get -y install x' failed: ", "stdout": text}, "apt"))
    assert said.problem == "dkms: no build dpkg: error processing package x (--configure): exit status 1"
    items = [
        {"msg": "fine", "failed": False},
        {"msg": "'apt-get -y install x' failed: ", "stdout": text, "failed": True},
    ]
    looped = heard(event("runner_on_failed", {"msg": "One or more items failed", "results": items}, "apt"))
    assert looped.problem == said.problem
    said = heard(event("runner_on_failed", {"msg": "Task failed: Module failed: the journal\ncannot be written"}))
    assert said == Said("gpu01", "roce", problem="the journal cannot be written")


COMMAND = {
    "msg": "non-zero return code",
    "cmd": ["dnf", "-y", "--downloadonly", "install", "x-1"],
    "rc": 1,
    "stdout": "Downloading Packages:\n[FAILED] x-1.rpm: Status code: 503",
    "stderr": "Error: Error downloading packages:\n  Status code: 503 for http://mirror/x-1.rpm\n",
    "failed": True,
}
CRASH = {
    "msg": "MODULE FAILURE\nSee stdout/stderr for the exact error",
    "module_stderr": "Traceback (most recent call last):\n  File x\nKeyError: 'ports'\n",
}


@pytest.mark.parametrize(
    ("result", "words"),
    [
        ({"results": [COMMAND]}, "dnf: Error downloading packages: Status code: 503 for http://mirror/x-1.rpm"),
        ({**COMMAND, "stdout": "", "stderr": ""}, "dnf: exit 1"),
        (CRASH, "KeyError: 'ports'"),
        ({"msg": "MODULE FAILURE"}, "MODULE FAILURE"),
    ],
)
def test_where_ansible_says_but_that_something_failed_its_output_tells_what(result, words):
    assert heard(event("runner_on_failed", result, "ansible.builtin.command")).problem == words


def test_a_plan_whose_work_is_still_to_be_done_says_nothing_yet():
    plan = {"steps": [], "todo": True, "work": {"manager": "apt"}}
    assert heard(event("runner_on_ok", plan, "gpufab.fabric.nccl")) is None
    done = {"steps": [], "todo": False, "work": {}}
    assert heard(event("runner_on_ok", done, "gpufab.fabric.nccl")) == Said("gpu01", "nccl")


def test_a_failure_without_a_word():
    assert heard(event("runner_on_failed", {}, "ansible.builtin.setup")).problem == "failed without a word"


def test_unreachable():
    said = heard(event("runner_on_unreachable", {"msg": "no route"}))
    assert said == Said("gpu01", "roce", problem="no route", unreachable=True)


@pytest.mark.parametrize(
    "other",
    [
        {"event": "playbook_on_stats", "event_data": {}},
        {"event": "verbose"},
        event("runner_on_ok", {}, "ansible.builtin.validate_argument_spec"),
        event("runner_on_skipped"),
    ],
)
def test_everything_else_is_of_no_interest(other):
    assert heard(other) is None


def test_a_result_of_another_version_is_named_as_such():
    with pytest.raises(GpufabError, match="cannot be read") as caught:
        heard(event("runner_on_ok", {"steps": [{"name": "x"}]}))
    assert "ANSIBLE_COLLECTIONS_PATH" in caught.value.hint


PLAY = Play(
    inventory=None,
    groups={"insync_node": ("gpu01", "gpu02"), "insync_roce": ()},
    hosts=("gpu01", "gpu02"),
    extra_vars={"gpufab_allow": ["traffic"]},
    check=True,
    forks=7,
    connect_seconds=12.5,
)


def test_the_second_inventory_has_the_groups_even_when_they_are_empty():
    assert json.loads(ansible._inventory(PLAY)) == {
        "all": {"hosts": {}},
        "insync_node": {"hosts": {"gpu01": {}, "gpu02": {}}},
        "insync_roce": {"hosts": {}},
    }


@pytest.mark.parametrize(
    ("output", "line"),
    [
        ("", "failed without a word"),
        ("PLAY [x]\nERROR! the playbook: x could not be found\n\n", "the playbook: x could not be found"),
        ("[WARNING]: a\n[ERROR]: inventory is empty\nmore\n", "inventory is empty"),
        ("something\nlast words\n", "last words"),
    ],
)
def test_what_ansible_itself_complains_about(output, line):
    assert ansible._error(output) == line


@pytest.mark.parametrize("number", [signal.SIGHUP, signal.SIGINT, signal.SIGTERM])
def test_a_signal_stops_the_run_at_its_end_and_later_ones_do_what_they_did_before(number):
    heard_of = []

    def running():
        with interrupts.deferred() as interrupted:
            heard_of.append(interrupted())
            os.kill(os.getpid(), number)
            heard_of.append(interrupted())

    before = signal.getsignal(number)
    with pytest.raises(InterruptedApply, match=number.name):
        running()
    assert heard_of == [False, True]
    assert signal.getsignal(number) is before


def test_a_second_signal_does_not_tear_the_cleaning_up_after_the_first():
    with interrupts.handled():
        with pytest.raises(InterruptedApply, match="SIGHUP"):
            os.kill(os.getpid(), signal.SIGHUP)
        os.kill(os.getpid(), signal.SIGINT)


def happened(kind, action, task="", **result):
    data = {"host": "gpu01", "task_action": action, "task": task, "res": result}
    return {"event": kind, "event_data": data}


def test_a_role_that_failed_is_heard_by_its_group():
    said = heard(happened("runner_on_ok", "ansible.builtin.group_by", add_group="failed_nccl"))
    assert said == Said("gpu01", "nccl", ended=True)


def test_the_last_play_says_nothing_new():
    assert heard(happened("runner_on_failed", "ansible.builtin.fail", LAST_TASK, msg="a role failed")) is None
