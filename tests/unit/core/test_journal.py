"""Steps that a run began and did not end: found in the journal's end, told with whose they were, and then settled."""

import json

import pytest

from gpufab_cli.module_utils import journal, planning
from gpufab_cli.module_utils.change import Step, Unknown
from gpufab_cli.module_utils.converge import Order, converge
from gpufab_cli.module_utils.journal import CODE, CutOff, Run
from tests.fakes import FakeHost

from .test_converge import FLAP, Toy, ToyWant, events, node, statuses

RUN = Run("20261201-1", "ada")
ORDER = Order(allow=FLAP, run=RUN)
WANT = ToyWant({"p": 2})


def found(host):
    snapshot = planning.take(host, {"toy": Toy()}, {"toy": WANT})
    plan = planning.plan(Toy(), snapshot, WANT)
    return [(finding.path, finding.evidence) for finding in plan.findings if finding.code == CODE]


def cut(host, after=0):
    """A run that is killed in the middle of the step, after so many of its writes."""

    class Killed(Toy):
        def apply(self, step, host):
            for number, change in enumerate(step.changes):
                if number == after:
                    break
                host.set("/toy/" + "/".join(change.path), str(change.desired))
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        converge(host, Killed(), WANT, ORDER)


@pytest.mark.parametrize("after", [0, 1])
def test_a_step_that_was_cut_off_is_told_until_it_has_been_made(after):
    host = node(p=1)
    cut(host, after)
    assert found(host) == [(("toy p",), "begun at 1970-01-01T00:16:40Z by 20261201-1 of ada, and not ended")]
    outcome = converge(host, Toy(), WANT, ORDER)
    assert statuses(outcome) == {"toy p": "made"}
    assert found(host) == []


def test_one_that_was_cut_off_when_all_was_made_is_settled_by_the_next_run():
    host = node(p=1)
    cut(host, after=2)
    assert len(found(host)) == 1
    converge(host, Toy(), WANT, Order(check=True))
    assert len(found(host)) == 1  # a dry run writes nothing
    assert converge(host, Toy(), WANT, ORDER).steps == ()
    assert events(host)[-1] == ("toy p", "settled")
    assert found(host) == []


def test_one_that_failed_has_ended():
    host, toy = node(p=1), Toy()
    toy.broken = ("p",)
    converge(host, toy, WANT, ORDER)
    assert found(host) == []


def test_a_step_of_the_same_name_of_another_feature_ends_none():
    host = FakeHost()
    for feature, event in (("roce", "begin"), ("numa", "begin"), ("numa", "made")):
        journal.write(host, RUN, feature, Step("x", ()), event)
    assert journal.cut_off(host) == (CutOff("roce", "x", "20261201-1", "ada", 1000.0),)


DAMAGED = ("{", "3", "null", '{"run": 3, "time": 1, "feature": "a", "step": "b", "event": "begin"}', "\udcff")


@pytest.mark.parametrize("line", [*DAMAGED, '{"time": "x"}', "[" * 100_000])
def test_a_damaged_line_is_about_nothing(line):
    host = FakeHost()
    journal.write(host, RUN, "roce", Step("x", ()), "begin")
    host.files[journal.FILE] += line.encode("utf-8", "surrogateescape") + b"\n"
    assert len(journal.cut_off(host)) == (1 if len(line) < journal.TAIL_BYTES else 0)


@pytest.mark.parametrize("time", ["NaN", "Infinity", "-1e300"])
def test_a_time_that_is_none_is_said_to_be_none(time):
    host = FakeHost()
    entry = {"run": {}, "time": 0, "feature": "toy", "step": "x", "event": "begin"}
    host.files[journal.FILE] = json.dumps(entry).replace('"time": 0', f'"time": {time}').encode() + b"\n"
    (finding,) = journal.findings(journal.cut_off(host), "toy")
    assert finding.evidence == "begun at an unknown time by an unnamed run, and not ended"


def test_no_more_than_the_end_of_the_journal_is_read():
    host = FakeHost()
    journal.write(host, RUN, "roce", Step("old", ()), "begin")
    host.files[journal.FILE] += b"x" * journal.TAIL_BYTES + b"\n"
    journal.write(host, RUN, "roce", Step("new", ()), "begin")
    assert [entry.step for entry in journal.cut_off(host)] == ["new"]


def test_a_journal_that_root_cannot_read_is_told_once():
    host = FakeHost({journal.FILE: ""})
    host.unreadable[journal.FILE] = "Input/output error"
    unread = journal.cut_off(host)
    assert isinstance(unread, Unknown)
    (finding,) = (f for feature in ("node", "roce", "dvfs") for f in journal.findings(unread, feature))
    assert (finding.unknown, finding.evidence) == (True, f"{journal.FILE}: Input/output error")
