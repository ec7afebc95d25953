"""``gpufab resume``, and who else speaks of a host that is left drained."""

import json
from dataclasses import replace

import pytest

from gpufab_cli.apply.states import Stage, State, States
from gpufab_cli.errors import Exit
from gpufab_cli.module_utils.claim import Answer, Claim
from tests.snapshots import in_sync

HOOKS = "drain: {command: [drain, '{host}']}\nresume: {command: [resume, '{host}']}\n"
ROLLOUT = "rollout: {canary: 0, batch: 100%, soak_s: 0, verify: false}\n"
LEFT = State(Stage.DISTURBED, "run-1", "kim", 1000.0, "roce compute/0: did not stick")
CLAIM = Claim("run-1", "kim", "ctl2", 1000.0, 0.0, drained=True)


@pytest.fixture
def site(site, nodes):
    with (site / "fabric.yml").open("a") as file:
        file.write(ROLLOUT + HOOKS)
    assert nodes.run("render") == 0
    return site


@pytest.fixture
def states(site):
    return States(site)


def test_given_back(gpufab_on, nodes, states):
    states.write("gpu01", LEFT)
    code, out, _ = gpufab_on("resume", "gpu01", "--note", "cable replaced")
    assert (code, "given back" in out, nodes.commands) == (Exit.IN_SYNC, True, [("resume", "gpu01")])
    assert states.all() == {}
    assert nodes.claims == [("gpu01", "take"), ("gpu01", "release")]


def test_it_is_on_record(gpufab_on, site, states):
    states.write("gpu01", LEFT)
    gpufab_on("resume", "gpu01", "--note", "cable replaced")
    (entry,) = map(json.loads, (site / ".gpufab" / "given-back.jsonl").read_text().splitlines())
    assert (entry["host"], entry["note"], entry["by_hand"]) == ("gpu01", "cable replaced", False)
    assert "did not stick" in entry["was"]


def test_by_hand_runs_nothing(gpufab_on, nodes, states):
    states.write("gpu01", LEFT)
    assert gpufab_on("resume", "gpu01", "--by-hand")[0] == Exit.IN_SYNC
    assert (nodes.commands, states.all()) == ([], {})


def test_what_no_apply_has_drained_is_not_touched(gpufab_on, nodes, states):
    code, out, _ = gpufab_on("resume", "gpu01")
    assert (code, nodes.commands) == (Exit.DRIFT, [])
    assert "no gpufab apply has left it drained" in out
    assert nodes.claims[-1] == ("gpu01", "release")


def test_what_another_clone_has_left_drained(gpufab_on, nodes, states):
    nodes.answer_claim = Answer(before=CLAIM)
    assert gpufab_on("resume", "gpu01")[0] == Exit.IN_SYNC
    assert nodes.commands == [("resume", "gpu01")]


def test_what_another_apply_is_at_work_on(gpufab_on, nodes, states):
    states.write("gpu01", LEFT)
    nodes.answer_claim = Answer("claimed by kim on ctl2", CLAIM, 90.0)
    code, out, _ = gpufab_on("resume", "gpu01")
    assert (code, nodes.commands) == (Exit.DRIFT, [])
    assert "claimed by kim on ctl2" in out
    assert states.all() == {"gpu01": LEFT}


def test_a_resume_that_fails_leaves_it_on_record(gpufab_on, nodes, states):
    states.write("gpu01", LEFT)
    nodes.fails["resume gpu01"] = "exit 1: slurmctld is down"
    code, out, _ = gpufab_on("resume", "gpu01")
    assert (code, "slurmctld is down" in out) == (Exit.DRIFT, True)
    assert states.read("gpu01").left == "resume: exit 1: slurmctld is down"
    assert nodes.claims[-1] == ("gpu01", "leave")


def test_json(gpufab_on, states):
    states.write("gpu01", LEFT)
    out = gpufab_on("resume", "gpu0[1-2]", "--format", "json")[1]
    found = json.loads(out)["hosts"]
    assert found["gpu01"] == {"given_back": True, "problem": ""}
    assert not found["gpu02"]["given_back"]


def test_completion_knows_the_drained_hosts(site, states):
    from click import Context

    from gpufab_cli.commands.resume import _hosts, command

    states.write("gpu01", LEFT)
    assert [item.value for item in _hosts(Context(command), None, "gpu")] == ["gpu01"]


def test_a_host_left_drained_is_in_every_audit(gpufab_on, states):
    states.write("gpu01", LEFT)
    for _ in range(2):
        code, out, _ = gpufab_on("audit")
        assert (code, out.count("host.left-drained")) == (Exit.DRIFT, 1)
        assert "did not stick" in out


def test_a_host_left_drained_is_in_every_apply(gpufab_on, states):
    states.write("gpu01", LEFT)
    for _ in range(2):
        code, out, _ = gpufab_on("apply", "--limit", "gpu02")
        assert (code, "gpu01 stays drained: " in out) == (Exit.DRIFT, True)


def test_the_node_tells_other_clones(gpufab_on, nodes, site):
    nodes.answers["gpu01"] = replace(in_sync("gpu01"), claim=CLAIM)
    code, out, _ = gpufab_on("audit")
    assert (code, "drained by kim on ctl2 (run run-1)" in out) == (Exit.DRIFT, True)


def test_the_same_said_twice_is_one_row(gpufab_on, nodes, states):
    states.write("gpu01", LEFT)
    nodes.answers["gpu01"] = replace(in_sync("gpu01"), claim=CLAIM)
    assert gpufab_on("audit")[1].count("host.left-drained") == 1


def test_an_apply_at_work_is_not_reported_as_left_drained(gpufab_on, states):
    states.write("gpu01", LEFT)
    with states.locked():
        code, out, err = gpufab_on("audit")
    assert (code, "host.left-drained" in out) == (Exit.IN_SYNC, False)
    assert "an apply is at work" in err


def test_two_applies_from_one_folder(gpufab_on, states, monkeypatch):
    from gpufab_cli.apply import states as module

    monkeypatch.setattr(module, "LOCK_SECONDS", 0)
    with states.locked():
        code, _, err = gpufab_on("apply")
    assert (code, "another gpufab apply or resume is at work" in err) == (Exit.USAGE, True)


@pytest.mark.parametrize("text", ["", "{", "[[[", '{"stage": "gone"}'])
def test_a_damaged_state_is_a_drain_that_is_not_known_to_have_ended(site, states, text):
    (site / ".gpufab" / "drained").mkdir(parents=True)
    (site / ".gpufab" / "drained" / "gpu01").write_text(text)
    assert states.all() == {"gpu01": State()}


def test_a_run_that_was_killed_before_it_had_drained_anything_holds_nobody_up(states, site):
    """Its claim is on a node, no state is here: the lock tells the next run that it has ended."""
    for number in range(3):
        with states.locked(f"run-{number}"):
            pass
    after = States(site)
    with after.locked("run-3"):
        assert after.ended == ("run-0", "run-1", "run-2")
