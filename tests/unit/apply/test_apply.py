"""Audit → run → audit: who is run, with what, and when it ends. Nodes are snapshots that the runner changes."""

import pytest

from gpufab_cli.apply.ansible import Said
from gpufab_cli.apply.apply import ROUNDS, Request, apply, new_run
from gpufab_cli.audit.audit import audit
from gpufab_cli.audit.collect import Collected, Failed, Failure
from gpufab_cli.compile.fabric import Fabric
from gpufab_cli.errors import Exit
from gpufab_cli.intent.compile import FEATURES
from gpufab_cli.intent.roles import role
from gpufab_cli.module_utils.change import ABSENT, Impact, Step, Unknown
from gpufab_cli.module_utils.converge import Status, StepResult
from gpufab_cli.module_utils.journal import Run
from tests.snapshots import HOSTS, WANTS, in_sync

DRIFT = {"ports": {0: {"pfc": ()}}}
RUN = Run("run-1", "kim", "spec-1")


class Nodes:
    """The hosts of the small fabric; ``answers`` is what the modules say of each host, round by round."""

    def __init__(self, tmp_path, **drifted):
        self.fabric = Fabric(tmp_path / "fabric.yml", WANTS, {}, "digest", limited=False)
        self.found = {host: in_sync(host) for host in HOSTS}
        self.drift(**drifted)
        self.plays, self.audits, self.heard = [], 0, []
        self.answers = []

    def drift(self, **hosts):
        for host, changes in hosts.items():
            self.found[host] = changes if isinstance(changes, Failure) else in_sync(host, **changes)

    def audit(self, fabric):
        self.audits += 1
        return audit(
            (Collected(host, found) for host, found in self.found.items() if host in fabric.wants), fabric.wants
        )

    def runner(self, play, listen):
        self.plays.append(play)
        said = self.answers.pop(0)(self) if self.answers else ()
        for item in said:
            listen(item)
        return tuple(said)

    def apply(self, **request):
        return apply(
            self.fabric,
            Request(**request),
            audit=self.audit,
            runner=self.runner,
            listen=self.heard.append,
            run=RUN,
        )


def ended(host, status, name="roce compute/0", reason=""):
    return Said(host, "roce", (StepResult("roce", Step(name, ()), status, reason),))


def mended(*hosts):
    """A round in which these hosts are brought to what is declared."""

    def run(nodes):
        nodes.drift(**{host: {} for host in hosts})
        return [ended(host, Status.MADE) for host in hosts]

    return run


def saying(*said):
    return lambda nodes: said


@pytest.fixture
def nodes(tmp_path):
    def make(*answers, **drifted):
        found = Nodes(tmp_path, **drifted)
        found.answers = list(answers)
        return found

    return make


def insync(*features, hosts=()):
    """The groups of hosts that need nothing of these features."""
    return {f"insync_{feature}": hosts for feature in features}


def test_without_work_ansible_never_starts(nodes):
    fabric = nodes()
    report = fabric.apply()
    assert (fabric.plays, fabric.audits, report.rounds) == ([], 1, 0)
    assert report.exit_code is Exit.IN_SYNC


def test_only_hosts_with_work_run_and_only_the_roles_that_have_some(nodes):
    fabric = nodes(mended("gpu02"), gpu02=DRIFT)
    report = fabric.apply()
    (play,) = fabric.plays
    assert play.hosts == ("gpu02",)
    assert play.groups == {**insync(*FEATURES, hosts=("gpu02",)), **insync("roce")}
    assert (fabric.audits, report.rounds, report.exit_code) == (2, 1, Exit.IN_SYNC)


def test_what_is_not_known_counts_as_work(nodes):
    fabric = nodes(
        gpu01={"ports": {0: {"pfc": Unknown("dcb hangs")}}}, gpu02=Failure(Failed.TIMEOUT, "no answer within 30 s")
    )
    fabric.apply()
    (play,) = fabric.plays
    assert play.hosts == ("gpu01", "gpu02")
    assert play.groups == {**insync(*FEATURES, hosts=("gpu01",)), **insync("roce")}


def test_findings_alone_are_no_work(nodes):
    fabric = nodes(gpu01={"lldpad": "7"})
    report = fabric.apply()
    assert (fabric.plays, report.exit_code) == ([], Exit.DRIFT)


def test_full_runs_everything_everywhere(nodes):
    fabric = nodes()
    fabric.apply(full=True)
    assert fabric.plays[0].hosts == HOSTS
    assert fabric.plays[0].groups == insync(*FEATURES)


def test_only_one_feature(nodes):
    fabric = nodes(gpu01=DRIFT, gpu02={"desired": ABSENT})
    fabric.apply(only=frozenset({"node"}))
    assert fabric.plays == []
    fabric.apply(only=frozenset({"node"}), full=True)
    assert fabric.plays[0].groups["insync_roce"] == HOSTS


def test_the_next_round_goes_on_where_the_last_one_left_things(nodes):
    def first(found):
        found.drift(gpu01={"ports": {1: {"pfc": ()}}})
        return [ended("gpu01", Status.MADE)]

    fabric = nodes(first, mended("gpu01"), gpu01=DRIFT)
    report = fabric.apply()
    assert (report.rounds, fabric.audits, report.exit_code) == (2, 3, Exit.IN_SYNC)


def test_a_fight_ends(nodes):
    again = saying(ended("gpu01", Status.MADE))
    fabric = nodes(*[again] * 9, gpu01=DRIFT)
    report = fabric.apply()
    assert (report.rounds, report.exit_code) == (ROUNDS, Exit.DRIFT)


@pytest.mark.parametrize("status", [Status.REFUSED, Status.BUSY, Status.BLOCKED, Status.FAILED, Status.UNKNOWN])
def test_when_nothing_moves_it_ends(nodes, status):
    fabric = nodes(*[saying(ended("gpu01", status))] * 3, gpu01=DRIFT)
    report = fabric.apply()
    assert (report.rounds, report.exit_code) == (1, Exit.DRIFT)
    assert [result.status for result in report.outcomes["gpu01"].steps] == [status]


def test_what_was_refused_is_not_asked_for_again_because_something_else_was_made(nodes):
    first = saying(
        Said(
            "gpu01",
            "roce",
            (
                StepResult("roce", Step("persist roce", ()), Status.MADE),
                StepResult("roce", Step("roce compute/0", ()), Status.REFUSED, "needs --allow link-flap"),
            ),
        )
    )
    fabric = nodes(first, gpu01=DRIFT)
    report = fabric.apply()
    assert (report.rounds, fabric.audits, report.exit_code) == (1, 2, Exit.DRIFT)


def test_steps_made_in_an_earlier_round_are_not_forgotten(nodes):
    def first(found):
        return [ended("gpu01", Status.MADE, "roce compute/0"), ended("gpu01", Status.NOT_BEGUN, "roce compute/1")]

    fabric = nodes(first, saying(ended("gpu01", Status.REFUSED, "roce compute/1")), gpu01=DRIFT)
    steps = fabric.apply().outcomes["gpu01"].steps
    assert [(s.step.name, s.status) for s in steps] == [
        ("roce compute/0", Status.MADE),
        ("roce compute/1", Status.REFUSED),
    ]


def test_what_somebody_else_has_done_in_between_is_looked_at_again(nodes):
    def done_already(found):
        found.drift(gpu01={})
        return [Said("gpu01", "roce")]

    fabric = nodes(done_already, gpu01=DRIFT)
    report = fabric.apply()
    assert (report.rounds, fabric.audits, report.exit_code) == (1, 2, Exit.IN_SYNC)


def test_a_dry_run_looks_and_runs_once(nodes):
    fabric = nodes(saying(ended("gpu01", Status.WOULD_MAKE)), gpu01=DRIFT)
    report = fabric.apply(check=True)
    assert fabric.plays[0].check
    assert (fabric.audits, report.rounds, report.exit_code) == (1, 1, Exit.DRIFT)


def test_a_dry_run_that_would_change_something_is_not_in_sync_whatever_the_audit_says(nodes):
    fabric = nodes(saying(ended("gpu01", Status.WOULD_MAKE)))
    assert fabric.apply(check=True, full=True).exit_code is Exit.DRIFT


def test_a_host_that_ansible_does_not_reach_is_unknown(nodes):
    lost = saying(Said("gpu01", "", problem="no route to host", unreachable=True))
    fabric = nodes(lost, gpu01=Failure(Failed.UNREACHABLE, "no route to host"))
    report = fabric.apply()
    assert (report.exit_code, report.outcomes["gpu01"].unreachable) == (Exit.UNKNOWN, True)


def test_a_role_that_fails_is_a_failure_though_all_is_in_sync(nodes):
    fabric = nodes(saying(Said("gpu01", "", problem="no python")))
    assert fabric.apply(full=True).exit_code is Exit.DRIFT


def test_what_the_play_is_told(nodes):
    fabric = nodes(gpu01=DRIFT, gpu02=DRIFT)
    fabric.apply(allow=frozenset({Impact.TRAFFIC, Impact.LINK_FLAP}), busy_ok=("gpu02", "gpu03"), forks=5)
    (play,) = fabric.plays
    told = play.extra_vars
    allow = ["link-flap", "traffic"]
    assert told["gpufab_granted"] == {"gpu01": allow, "gpu02": allow}
    assert told["gpufab_busy_hosts"] == ["gpu02", "gpu03"]
    run = {"id": "run-1", "user": "kim", "spec": "spec-1", "claimed": False, "seconds": 600}
    assert told["gpufab_run"] == run
    assert (play.inventory.name, play.forks) == ("inventory", 5)


def test_a_sites_role_variables_have_no_say(nodes):
    """Extra variables beat group_vars: each role's are given, also without any consent."""
    fabric = nodes(gpu01=DRIFT)
    fabric.apply()
    told = fabric.plays[0].extra_vars
    assert told["gpufab_granted"] == {"gpu01": []}
    for feature in FEATURES:
        assert told[f"{role(feature)}_allow"] == "{{ gpufab_allow }}"
        assert told[f"{role(feature)}_busy_ok"] == "{{ gpufab_busy_ok }}"
        assert told[f"{role(feature)}_run"] == "{{ gpufab_run }}"


class TestNotBegun:
    """One feature that fails keeps back what needs it, and that is said; the others are none of its affair."""

    def test_what_needs_a_failed_feature(self, nodes):
        fabric = nodes(saying(Said("gpu01", "ofed", problem="no such version"), Said("gpu01", "ofed", ended=True)))
        outcome = fabric.apply(full=True, only=frozenset({"ofed", "roce", "links"})).outcomes["gpu01"]
        assert outcome.not_begun == {"roce": "needs ofed, which failed"}

    def test_what_does_not_need_it(self, nodes):
        fabric = nodes(saying(Said("gpu01", "nccl", problem="not offered"), Said("gpu01", "nccl", ended=True)))
        assert fabric.apply(full=True).outcomes["gpu01"].not_begun == {}

    def test_a_failure_in_a_role_of_tasks_is_known_by_its_group(self, nodes):
        fabric = nodes(saying(Said("gpu01", "", problem="dpkg: error"), Said("gpu01", "ofed", ended=True)))
        outcome = fabric.apply(full=True, only=frozenset({"ofed", "roce"})).outcomes["gpu01"]
        assert outcome.not_begun == {"roce": "needs ofed, which failed"}

    def test_it_is_no_success(self, nodes):
        fabric = nodes(saying(Said("gpu01", "ofed", ended=True)))
        assert fabric.apply(full=True).exit_code is Exit.DRIFT


def test_what_modules_say_is_heard_at_once(nodes):
    fabric = nodes(mended("gpu01"), gpu01=DRIFT)
    fabric.apply()
    assert [said.host for said in fabric.heard] == ["gpu01"]


def test_the_journal_is_told_the_operator_behind_sudo(nodes, monkeypatch):
    monkeypatch.setenv("SUDO_USER", "kim")
    fabric = nodes().fabric
    first, second = new_run(fabric), new_run(fabric)
    assert (first.user, first.spec) == ("kim", "digest")
    assert first.id != second.id
