"""What ansible-runner's events are taken for."""

import json
import locale
import os
import signal

import pytest

from gpufab_cli.apply import ansible, interrupts
from gpufab_cli.apply.ansible import Play, Said, heard
from gpufab_cli.apply.interrupts import InterruptedApply
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
    words = "Ansible did not reach it, and says 'no route'"
    assert said == Said("gpu01", "roce", problem=words, unreachable=True)


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


def nested(levels):
    return json.loads("[" * levels + "]" * levels)


def spoilt(**changes):
    """A result whose one step has other fields than the modules give it."""
    return {"steps": [{**over_the_wire(RESULT)["steps"][0], **changes}]}


BROKEN = {
    "of another version": {"steps": [{"name": "x"}]},
    "no mapping": [1, 2],
    "text": "ok",
    "steps no list": {"steps": 5},
    "a step no mapping": {"steps": ["x"]},
    "no such status": spoilt(status="great"),
    "a feature of the wrong type": spoilt(feature=["roce"]),
    "no such feature": spoilt(feature="rocket"),
    "no such code": spoilt(changes=[{"path": ["x"], "current": 1, "desired": 2, "code": "rocket.fuel"}]),
    "a number of 400 digits": spoilt(reason=10**400),
    "infinite": spoilt(changes=[{"path": ["x"], "current": float("inf"), "desired": 2, "code": "roce.pfc"}]),
    "nested": spoilt(changes=[{"path": ["x"], "current": nested(900), "desired": 2, "code": "roce.pfc"}]),
}


@pytest.mark.parametrize("kind", ["runner_on_ok", "runner_on_failed"])
@pytest.mark.parametrize("result", BROKEN.values(), ids=BROKEN)
def test_a_result_that_cannot_be_read_is_its_own_hosts_problem(result, kind):
    said = heard(event(kind, result))
    assert (said.host, said.feature, said.steps, said.unreachable) == ("gpu01", "roce", (), False)
    assert "\n" not in said.problem
    assert said.problem != "failed without a word"
    if kind == "runner_on_ok":
        assert "cannot be read" in said.problem
        assert "ANSIBLE_COLLECTIONS_PATH" in said.problem


def test_neither_a_broken_result_nor_a_listener_that_stumbles_ends_the_run(tmp_path):
    heard_of = []

    def listen(said):
        heard_of.append(said.host)
        if said.host == "gpu02":
            raise KeyError("x")

    run = ansible._Run(tmp_path, listen)
    for host, result in (("gpu01", BROKEN["steps no list"]), ("gpu02", {}), ("gpu03", over_the_wire(RESULT))):
        assert run._hear(event("runner_on_ok", result, host=host)) is False
    assert heard_of == ["gpu01", "gpu02", "gpu03"]
    problems = {said.host: said.problem for said in run.said}
    assert "cannot be read" in problems["gpu01"]
    assert "KeyError" in problems["gpu02"]
    assert problems["gpu03"] == ""
    assert run.said[-1].steps == (RESULT,)


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


@pytest.mark.parametrize(
    ("told", "given"),
    [("xx_YY.UTF-8", "C.UTF-8"), ("C", "C.UTF-8"), ("C.UTF-8", None)],
    ids=["not generated", "not of UTF-8", "fine"],
)
def test_ansible_starts_whatever_locale_the_environment_names(told, given, monkeypatch, tmp_path):
    for name in ("LC_ALL", "LC_CTYPE", "LANG"):
        monkeypatch.setenv(name, told)
    before = locale.setlocale(locale.LC_ALL)
    play = Play(tmp_path, {}, {}, ("gpu01",), {}, False, 1, 5.0)
    assert ansible._Run(tmp_path, lambda _: None)._environment(play).get("LC_ALL") == given
    assert locale.setlocale(locale.LC_ALL) == before
