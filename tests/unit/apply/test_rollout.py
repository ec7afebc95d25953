"""One batch after the other, and when it goes no further. Nodes are snapshots that the runner changes."""

from dataclasses import replace

import pytest

from gpufab_cli.apply.ansible import Said
from gpufab_cli.apply.apply import Request
from gpufab_cli.apply.batches import Portions
from gpufab_cli.apply.drain import Service
from gpufab_cli.apply.rollout import KILLED, UNSEEN, Ways, rollout
from gpufab_cli.apply.states import Stage
from gpufab_cli.audit.audit import audit
from gpufab_cli.audit.collect import Collected, Failed, Failure
from gpufab_cli.compile.fabric import Fabric
from gpufab_cli.errors import Exit, GpufabError
from gpufab_cli.module_utils.change import Change, Impact, Step, Unknown
from gpufab_cli.module_utils.converge import Status, StepResult
from gpufab_cli.module_utils.journal import Run
from gpufab_cli.spec.hooks import Hook
from tests.snapshots import HOSTS, WANTS, in_sync

DRIFT = {"ports": {0: {"pfc": ()}}}
PCI = "0000:18:00.0"
FLAP = frozenset({Impact.LINK_FLAP, Impact.TRAFFIC})
CONSENT = frozenset(Impact)
EACH = Portions(batch="1")
HOOKS = (Hook(command=("drain", "{host}")), Hook(command=("resume", "{host}")))


def step(host, status=Status.MADE, reason=""):
    change = Change((PCI, "pfc"), (), (3,), "roce.pfc")
    return Said(host, "roce", (StepResult("roce", Step("roce compute/0", (change,), FLAP, PCI), status, reason),))


class Theirs:
    """Claims of which some are another run's."""

    def __init__(self, refused, log=None):
        self.refused, self.log = refused, log if log is not None else []

    def take(self, hosts):
        self.log.append(f"take {' '.join(hosts)}")
        return {host: why for host, why in self.refused.items() if host in hosts}

    def release(self, hosts):
        self.log.extend(f"release {host}" for host in hosts)

    def leave(self, hosts):
        self.log.extend(f"leave {host}" for host in hosts)


class Site:
    """``ending`` maps a host to what a role does to it; the others are mended."""

    def __init__(self, folder):
        self.fabric = Fabric(folder / "fabric.yml", WANTS, {}, "digest", limited=False)
        self.found = {host: in_sync(host, **DRIFT) for host in HOSTS}
        self.ending, self.later, self.log, self.fails = {}, {}, [], {}
        self.unproven, self.restless = {}, {}
        self.folder = folder
        self.claims, self.plays, self.hidden = None, [], False

    def hide_impact(self):
        self.hidden = True

    def audit(self, fabric):
        self.log.append(f"audit {len(fabric.wants)}")
        report = audit(
            (Collected(host, found) for host, found in self.found.items() if host in fabric.wants), fabric.wants
        )
        if not self.hidden:
            return report
        blind = {
            name: replace(host, rows=tuple(replace(row, impact=frozenset()) for row in host.rows))
            for name, host in report.hosts.items()
        }
        return replace(report, hosts=blind)

    def runner(self, play, listen):
        self.log.append(f"run {' '.join(play.hosts)}")
        self.plays.append(play)
        return tuple(self.ending.get(host, self.mend)(host) for host in play.hosts)

    def mend(self, host):
        self.found[host] = in_sync(host)
        return step(host)

    def judge(self, name, found):
        def look(hosts):
            self.log.append(f"{name} {' '.join(hosts)}")
            if isinstance(found, Exception):
                raise found
            return {host: why for host, why in found.items() if host in hosts}

        return look

    def command(self, argv, seconds):
        self.log.append(" ".join(argv))
        return self.fails.get(" ".join(argv), "")

    def sleep(self, seconds):
        self.log.append("wait")
        for host, snapshot in self.later.items():
            self.found[host] = snapshot

    def go(self, portions=EACH, hooks=(None, None), allow=CONSENT, **request):
        ways = Ways(
            audit=self.audit,
            runner=self.runner,
            listen=lambda _: None,
            claims=self.claims,
            verify=self.judge("verify", self.unproven),
            soak=self.judge("soak", self.restless),
            sleep=self.sleep,
        )
        service = Service(self.folder, *hooks, self.command)
        return rollout(
            self.fabric, Request(allow=allow, **request), portions, ways=ways, service=service, run=Run("run-1")
        )

    @property
    def ran(self):
        return [line for line in self.log if line.startswith("run")]


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def test_each_batch_passes_before_the_next_begins(site):
    report = site.go()
    assert site.log == [
        "audit 3",
        *("run gpu01", "audit 1", "verify gpu01", "soak gpu01"),
        *("run gpu02", "audit 1", "verify gpu02", "soak gpu02"),
        *("run gpu03", "audit 1", "verify gpu03"),
    ]
    assert (report.exit_code, report.stop, report.rounds) == (Exit.IN_SYNC, None, 1)
    assert report.batches == (("gpu01",), ("gpu02",), ("gpu03",))
    assert set(report.audit.hosts) == set(report.outcomes) == set(HOSTS)


def test_one_host_is_verified_too(site):
    site.found |= {"gpu01": in_sync("gpu01"), "gpu03": in_sync("gpu03")}
    site.go()
    assert site.log == ["audit 3", "run gpu02", "audit 1", "verify gpu02"]


def test_without_work_there_is_one_audit(site):
    site.found = {host: in_sync(host) for host in HOSTS}
    assert (site.go().exit_code, site.log) == (Exit.IN_SYNC, ["audit 3"])


def test_a_dry_run_takes_all_at_once_and_asks_nobody(site):
    site.ending = dict.fromkeys(HOSTS, lambda host: step(host, Status.WOULD_MAKE))
    site.go(check=True, hooks=HOOKS)
    assert site.log == ["audit 3", "run gpu01 gpu02 gpu03"]


def stopped(report, host, why):
    assert report.exit_code is Exit.DRIFT
    assert {name: words for name, words in report.stop.worse.items() if why in words} == {host: report.stop.worse[host]}


def test_a_step_that_fails_stops_it(site):
    site.ending["gpu01"] = lambda host: step(host, Status.FAILED, "did not stick")
    report = site.go()
    stopped(report, "gpu01", "roce compute/0: did not stick")
    assert (report.stop.not_begun, site.ran) == (("gpu02", "gpu03"), ["run gpu01"])


def test_a_step_that_says_made_and_is_not_stops_it(site):
    site.ending["gpu02"] = step
    report = site.go()
    stopped(report, "gpu02", "roce.pfc compute/0 pfc: not as declared")
    assert report.stop.not_begun == ("gpu03",)


def broken(**changes):
    def run(site, host):
        site.found[host] = in_sync(host, **changes)
        return step(host)

    return run


def test_something_new_that_is_wrong_stops_it(site):
    site.ending["gpu01"] = lambda host: broken(lldpad="7")(site, host)
    stopped(site.go(), "gpu01", "lldpad")


def test_something_that_is_no_longer_known_stops_it(site):
    hidden = Unknown("dcb hangs")
    site.ending["gpu01"] = lambda host: broken(ports={0: {"dscp_priority": hidden}})(site, host)
    stopped(site.go(), "gpu01", "dcb hangs")


def test_what_was_wrong_before_stops_nothing(site):
    site.found = {host: in_sync(host, lldpad="7", **DRIFT) for host in HOSTS}
    site.ending = dict.fromkeys(HOSTS, lambda host: broken(lldpad="7")(site, host))
    report = site.go()
    assert report.stop is None
    assert "verify" not in " ".join(site.log)  # the audit has said already that they are not in order


def test_a_link_that_still_trains_is_given_time(site):
    site.ending["gpu01"] = lambda host: broken(lldpad="7")(site, host)
    site.later = {"gpu01": in_sync("gpu01")}
    assert site.go().stop is None
    assert site.log[:5] == ["audit 3", "run gpu01", "audit 1", "wait", "audit 1"]


def test_a_host_that_is_lost_stops_it(site):
    def lose(host):
        site.found[host] = Failure(Failed.TIMEOUT, "no answer within 30 s")
        return step(host)

    site.ending["gpu01"] = lose
    stopped(site.go(), "gpu01", "timeout: no answer within 30 s")


@pytest.mark.parametrize("kind", [Failed.UNREACHABLE, Failed.TIMEOUT])
def test_a_host_that_is_not_reached_is_not_begun_and_holds_up_no_other(site, kind):
    site.found["gpu01"] = Failure(kind, "no route")
    report = site.go()
    assert (report.stop, report.exit_code) == (None, Exit.UNKNOWN)
    assert site.ran == ["run gpu02", "run gpu03"]
    assert report.outcomes["gpu01"].problem == f"not begun: {kind.value}: no route"


def test_a_host_that_nothing_is_known_of_comes_last_and_stops_nothing(site):
    site.found["gpu01"] = Failure(Failed.GARBAGE, "printed 'x'")
    site.ending["gpu01"] = lambda host: Said(host, "", problem="no route", unreachable=True)
    report = site.go()
    assert (report.stop, report.exit_code) == (None, Exit.UNKNOWN)
    assert site.ran == ["run gpu02", "run gpu03", "run gpu01"]


def test_what_verify_does_not_pass_stops_it(site):
    site.unproven = {"gpu01": "verify: pfc compute/0: fail: off"}
    stopped(site.go(), "gpu01", "verify: pfc compute/0")


def test_a_verify_that_cannot_be_run_is_no_pass(site):
    site.unproven = GpufabError("pytest: it fell over")
    stopped(site.go(), "gpu01", "it fell over")


def test_restless_counters_stop_it(site):
    site.restless = {"gpu02": "compute/0 out_of_sequence +7"}
    report = site.go()
    stopped(report, "gpu02", "out_of_sequence +7")
    assert site.ran == ["run gpu01", "run gpu02"]


def test_counters_are_not_watched_for_what_disturbs_nobody(site):
    def keep(host):
        site.found[host] = in_sync(host)
        return Said(host, "roce", (StepResult("roce", Step("persist roce", ()), Status.MADE),))

    site.ending = dict.fromkeys(HOSTS, keep)
    site.go()
    assert "soak" not in " ".join(site.log)


def test_a_canary_in_use_proves_nothing(site):
    site.ending["gpu01"] = lambda host: step(host, Status.BUSY, "python computes on a GPU")
    stopped(site.go(), "gpu01", "busy: python computes on a GPU")


def test_a_canary_without_consent_is_no_reason_to_stop(site):
    site.ending = dict.fromkeys(HOSTS, lambda host: step(host, Status.REFUSED, "needs --allow traffic"))
    report = site.go(allow=frozenset())
    assert (report.stop, len(site.ran)) == (None, 3)


def test_a_later_batch_in_use_is_no_reason_to_stop(site):
    site.ending["gpu02"] = lambda host: step(host, Status.BUSY, "python computes on a GPU")
    assert site.go().stop is None
    assert site.ran[-1] == "run gpu03"


class TestHooks:
    def test_around_what_is_disturbed(self, site):
        site.go(hooks=HOOKS)
        assert site.log[:8] == [
            *("audit 3", "drain gpu01", "run gpu01", "audit 1", "verify gpu01", "resume gpu01", "soak gpu01"),
            "drain gpu02",
        ]

    def test_not_where_nothing_may_be_disturbed(self, site):
        site.go(hooks=HOOKS, allow=frozenset())
        assert "drain" not in " ".join(site.log)

    def test_a_host_that_is_worse_stays_drained(self, site):
        site.ending["gpu01"] = lambda host: step(host, Status.FAILED, "did not stick")
        report = site.go(hooks=HOOKS)
        assert report.left_drained == {"gpu01": "roce compute/0: did not stick"}
        assert "resume gpu01" not in site.log
        state = Service(site.folder, *HOOKS).states.read("gpu01")
        assert (state.stage, state.left) == (Stage.DISTURBED, "roce compute/0: did not stick")

    def test_the_others_of_its_batch_are_given_back(self, site):
        site.ending["gpu01"] = lambda host: step(host, Status.FAILED, "did not stick")
        site.go(Portions(canary=0, batch="100%"), hooks=HOOKS)
        assert {"resume gpu02", "resume gpu03"} <= set(site.log)
        assert "resume gpu01" not in site.log

    def test_a_host_that_cannot_be_drained_is_not_begun(self, site):
        site.fails["drain gpu01"] = "exit 1"
        report = site.go(hooks=HOOKS)
        assert site.ran == []
        stopped(report, "gpu01", "drain: exit 1")
        assert report.left_drained == {}  # it was given back

    def test_a_host_that_cannot_be_given_back_is_named(self, site):
        site.fails["resume gpu02"] = "exit 1"
        report = site.go(hooks=HOOKS)
        assert (report.left_drained, report.exit_code) == ({"gpu02": "resume: exit 1"}, Exit.DRIFT)

    def test_a_host_that_nothing_is_known_of_is_not_begun(self, site):
        site.found["gpu02"] = Failure(Failed.TIMEOUT, "no answer")
        report = site.go(hooks=HOOKS)
        assert report.outcomes["gpu02"].problem == UNSEEN
        assert site.ran == ["run gpu01", "run gpu03"]

    def test_what_a_killed_run_has_drained_is_given_back(self, site):
        site.found = {host: in_sync(host) for host in HOSTS}
        Service(site.folder, *HOOKS, lambda *_: "").drain(["gpu01"])
        assert site.go(hooks=HOOKS).left_drained == {}
        assert site.log == ["audit 3", "verify gpu01", "resume gpu01"]

    def test_unless_verify_does_not_pass_it(self, site):
        site.found = {host: in_sync(host) for host in HOSTS}
        Service(site.folder, *HOOKS, lambda *_: "").drain(["gpu01"])
        site.unproven = {"gpu01": "verify: pfc: fail"}
        assert site.go(hooks=HOOKS).left_drained == {"gpu01": KILLED}
        assert "resume gpu01" not in site.log

    def test_unless_it_is_not_in_order(self, site):
        site.found = {host: in_sync(host, lldpad="7") for host in HOSTS}
        Service(site.folder, *HOOKS, lambda *_: "").drain(["gpu01"])
        assert site.go(hooks=HOOKS).left_drained == {"gpu01": KILLED}

    def test_with_work_left_it_is_drained_again(self, site):
        """Somebody may have given it back since, and a drain that was interrupted may never have come to its end."""
        Service(site.folder, *HOOKS, lambda *_: "").drain(["gpu01"])
        site.go(hooks=HOOKS)
        assert site.log.index("drain gpu01") < site.log.index("run gpu01") < site.log.index("resume gpu01")

    def test_an_interrupted_drain_does_not_count(self, site):
        def interrupted(argv, seconds):
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            Service(site.folder, *HOOKS, interrupted).drain(["gpu01"])
        assert Service(site.folder, *HOOKS).states.read("gpu01").stage is Stage.ASKED
        site.go(hooks=HOOKS)
        assert site.log.index("drain gpu01") < site.log.index("run gpu01") < site.log.index("resume gpu01")

    def test_what_is_left_for_the_operator_is_listed_until_it_is_given_back(self, site):
        site.ending["gpu01"] = lambda host: step(host, Status.FAILED, "did not stick")
        site.go(hooks=HOOKS)
        site.found = {host: in_sync(host) for host in HOSTS}
        for _ in range(2):
            assert site.go(hooks=HOOKS).left_drained == {"gpu01": "roce compute/0: did not stick"}
            assert site.go(hooks=HOOKS, check=True).left_drained.keys() == {"gpu01"}
        assert "resume gpu01" not in site.log

    def test_an_impact_that_shows_only_on_the_node_waits_for_a_drain(self, site):
        """The audit sees no impact; the module does, and is refused, as the host was not drained for it."""
        granted = []

        def on_the_node(host):
            granted.append(site.plays[-1].extra_vars["gpufab_granted"].get(host))
            if not granted[-1]:
                return step(host, Status.REFUSED, "needs --allow link-flap,traffic")
            return site.mend(host)

        site.hide_impact()
        site.found |= {host: in_sync(host) for host in ("gpu02", "gpu03")}
        site.ending["gpu01"] = on_the_node
        site.go(hooks=HOOKS)
        assert [bool(allowed) for allowed in granted] == [False, True]
        assert [line for line in site.log if "gpu01" in line][:5] == [
            *("run gpu01", "drain gpu01", "run gpu01", "verify gpu01", "resume gpu01"),
        ]

    def test_a_host_that_another_run_has_is_named_and_no_reason_to_stop(self, site):
        site.claims = Theirs({"gpu02": "claimed by kim on ctl2 (run r2)"})
        report = site.go(hooks=HOOKS)
        assert report.outcomes["gpu02"].held == "claimed by kim on ctl2 (run r2)"
        assert (report.stop, report.exit_code) == (None, Exit.DRIFT)
        assert site.ran == ["run gpu01", "run gpu03"]
        assert not {"drain gpu02", "resume gpu02"} & set(site.log)

    def test_a_canary_that_another_run_has_proves_nothing(self, site):
        site.claims = Theirs({"gpu01": "claimed by kim on ctl2 (run r2)"})
        stopped(site.go(hooks=HOOKS), "gpu01", "claimed by kim on ctl2")
        assert site.ran == []

    def test_claimed_before_it_is_drained_and_released_after_it_is_given_back(self, site):
        site.found |= {host: in_sync(host) for host in ("gpu02", "gpu03")}
        site.claims = Theirs({}, site.log)
        site.go(hooks=HOOKS)
        lines = [line for line in site.log if "gpu01" in line]
        assert lines == ["take gpu01", "drain gpu01", "run gpu01", "verify gpu01", "resume gpu01", "release gpu01"]
