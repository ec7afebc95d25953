"""Claims: two applies meet on a node, and one of them waits."""

import io
import json
from dataclasses import replace

import pytest

from gpufab_cli.module_utils import claim
from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.claim import Question, in_the_way, settle
from gpufab_cli.module_utils.planning import left_behind
from tests.fakes import FakeHost

TAKE = Question("take", "run-1", "kim", "ctl1", 180.0, drained=True)
OTHER = replace(TAKE, run="run-2", user="lee", controller="ctl2")


@pytest.fixture
def host():
    return FakeHost()


def test_taken_renewed_and_released(host):
    assert settle(host, TAKE).problem == ""
    host.up_seconds += 100
    assert settle(host, replace(TAKE, do="renew")).problem == ""
    host.up_seconds += 100
    assert in_the_way(host, "run-2", needed=False)
    assert settle(host, replace(TAKE, do="release")).problem == ""
    assert claim.read(host) is ABSENT


def test_another_run_is_refused_by_name_and_time(host):
    settle(host, TAKE)
    host.up_seconds += 80
    answer = settle(host, OTHER)
    assert answer.problem == "claimed by kim on ctl1 (run run-1) since 1970-01-01 00:16 UTC, for 100 s more"
    assert answer.left_s == 100


def test_one_that_is_over_holds_nobody_up(host):
    settle(host, TAKE)
    host.up_seconds += 180
    answer = settle(host, OTHER)
    assert (answer.problem, answer.before.run) == ("", "run-1")


def test_one_that_is_over_is_not_renewed(host):
    """Somebody else may have had the node, and have given it back, meanwhile."""
    settle(host, TAKE)
    host.up_seconds += 180
    assert settle(host, replace(TAKE, do="renew")).problem


def test_the_wall_clock_does_not_matter(host):
    settle(host, TAKE)
    host.now = lambda: -1e9
    host.up_seconds += 181
    assert in_the_way(host, "run-2", needed=False) == ""


def test_a_run_that_is_known_to_have_ended_is_replaced(host):
    settle(host, TAKE)
    assert settle(host, replace(OTHER, instead_of=("run-0", "run-1"))).problem == ""


def test_nobody_releases_anothers(host):
    settle(host, TAKE)
    for do in ("release", "leave", "renew"):
        settle(host, replace(OTHER, do=do))
    assert claim.read(host).run == "run-1"
    assert in_the_way(host, "run-2", needed=False)


def test_left_drained_shows_once_the_run_is_over(host):
    settle(host, TAKE)
    assert left_behind(host) is ABSENT
    settle(host, replace(TAKE, do="leave"))
    assert in_the_way(host, "run-2", needed=False) == ""
    assert left_behind(host).user == "kim"


def test_what_was_not_drained_is_not_left_drained(host):
    settle(host, replace(TAKE, drained=False))
    host.up_seconds += 999
    assert left_behind(host) is ABSENT


def test_who_has_claimed_needs_a_live_claim(host):
    assert in_the_way(host, "run-1", needed=True)
    settle(host, TAKE)
    assert in_the_way(host, "run-1", needed=True) == ""
    host.up_seconds += 180
    assert "is over" in in_the_way(host, "run-1", needed=True)


@pytest.mark.parametrize("text", ["", "{", "[[[", '{"run": 7}'])
def test_a_damaged_claim_is_no_claim_of_nobody(host, text):
    host.files[claim.FILE] = text
    assert "cannot tell" in in_the_way(host, "run-1", needed=False)
    assert settle(host, TAKE).problem
    assert isinstance(left_behind(host), Unknown)


def test_taken_under_the_nodes_lock(host):
    settle(host, TAKE)
    assert host.locked == 2


def test_a_question_on_stdin(host):
    out = io.StringIO()
    text = json.dumps({"claim": {"do": "take", "run": "r", "user": "kim", "controller": "c", "seconds": 9.0}})
    assert claim.answer(host, io.StringIO(text), out, "---")
    assert json.loads(out.getvalue().splitlines()[1])["problem"] == ""
    assert claim.read(host).expires == 509.0


@pytest.mark.parametrize("text", ["", "[]", '{"claim": {"do": "steal", "run": "r"}}', '{"claim": {}}'])
def test_a_question_that_cannot_be_read(host, text, capsys):
    assert not claim.answer(host, io.StringIO(text), io.StringIO(), "---")
    assert host.writes == []
