"""A snapshot against what is wanted: every kind of row, and what it makes of its host."""

from dataclasses import replace

import pytest

from gpufab_cli.audit import judge as judging
from gpufab_cli.audit.audit import audit
from gpufab_cli.audit.collect import Collected, Failed, Failure
from gpufab_cli.audit.fabric import Facts
from gpufab_cli.audit.judge import Kind, Place, State, Work, judge
from gpufab_cli.module_utils.change import ABSENT, Impact, Pending, Plan, Unknown
from gpufab_cli.module_utils.features import FEATURES
from tests.snapshots import WANTS, in_sync, node_seen
from tests.unit.core.roce_node import nic

PCI = "0000:18:00.0"


def report(**changes):
    no_root = changes.pop("no_root", "")
    return judge(Collected("gpu01", in_sync(**changes), no_root), WANTS["gpu01"])


def rows(**changes):
    return report(**changes).rows


def test_a_node_as_declared_has_nothing_to_say():
    found = report()
    assert (found.rows, found.state) == ((), State.IN_SYNC)
    assert found.work == {"node": Work.NONE, "roce": Work.NONE}


def test_drift_names_the_port_the_setting_and_what_mending_it_takes():
    (row,) = rows(ports={0: {"pfc": ()}})
    assert (row.kind, row.code, row.feature) == (Kind.DRIFT, "roce.pfc", "roce")
    assert row.place == Place(PCI, "compute/0", "pfc")
    assert (row.current, row.desired) == ((), (3,))
    assert {Impact.LINK_FLAP, Impact.TRAFFIC} <= row.impact


def test_drift_is_work_for_its_feature_alone():
    assert report(ports={1: {"pfc": ()}}).work == {"node": Work.NONE, "roce": Work.SOME}


def test_an_unknown_value_is_neither_drift_nor_in_sync_and_counts_as_work():
    found = report(ports={0: {"pfc": Unknown("dcb is not installed")}})
    (row,) = found.rows
    assert (row.kind, row.reason, row.desired) == (Kind.UNKNOWN, "dcb is not installed", (3,))
    assert (found.state, found.work["roce"]) == (State.UNKNOWN, Work.SOME)


def test_known_drift_beside_an_unknown_value_is_still_drift():
    found = report(ports={0: {"pfc": Unknown("dcb hangs"), "cnp_dscp": 0}})
    assert {row.kind for row in found.rows} == {Kind.DRIFT, Kind.UNKNOWN}
    assert found.state is State.DRIFT


def test_a_blocked_step_says_by_whom():
    found = rows(ports={0: {"pfc": ()}}, lldpad="77")
    blocked = [row for row in found if row.kind is Kind.BLOCKED]
    assert [row.reason for row in blocked] == ["lldpad (process 77) owns the port's DCB settings"]
    assert "foreign.lldpad" in {row.code for row in found}


def test_a_finding_is_not_in_sync_but_is_no_work():
    found = report(nics=(nic(pci=PCI, mac="02:00:00:00:01:00", serial="SN10", mtu=1500), *in_sync().devices.nics[1:]))
    (row,) = found.rows
    assert (row.kind, row.code, row.place) == (Kind.FINDING, "roce.mtu", Place(PCI, "compute/0"))
    assert (found.state, found.work["roce"]) == (State.DRIFT, Work.FINDINGS)


def test_a_finding_of_severity_info_leaves_its_host_in_sync():
    found = report(node=node_seen(restore_disabled=True))
    assert [row.code for row in found.rows] == ["node.restore-disabled"]
    assert found.state is State.IN_SYNC


def test_files_have_a_name_and_no_device():
    (row,) = rows(desired=ABSENT)
    assert (row.code, row.place) == ("node.desired", Place(name="/etc/gpufab/desired.d/roce.json"))


def test_no_root_is_unknown():
    found = report(no_root="sudo: a password is required")
    assert [(row.kind, row.code, row.reason) for row in found.rows] == [
        (Kind.UNKNOWN, "host.no-root", "sudo: a password is required")
    ]
    assert found.state is State.UNKNOWN


def test_pending_waits_and_is_not_in_sync(monkeypatch):
    class Waits:
        name, restored = "node", False

        def plan(self, snapshot, want):
            return Plan(pending=(Pending((PCI, "roce_enable"), 0, 1, Impact.REBOOT, "node.files"),))

    monkeypatch.setattr(judging, "FEATURES", {**FEATURES, "node": Waits()})
    found = report()
    (row,) = found.rows
    assert (row.kind, row.reason, row.current, row.desired) == (Kind.PENDING, "waits for reboot", 0, 1)
    assert (found.state, found.work["node"]) == (State.DRIFT, Work.SOME)


@pytest.mark.parametrize("kind", list(Failed))
def test_no_snapshot_is_unknown(kind):
    failure = Failure(kind, "why")
    found = judge(Collected("gpu01", failure), WANTS["gpu01"])
    assert (found.failure, found.state, found.rows, found.work) == (failure, State.UNKNOWN, (), {})


def test_what_gpufab_stumbles_over_holds_up_no_other_host_and_is_no_pass(monkeypatch):
    """Whatever a node or its users have written there, the audit of the fleet goes on."""
    plan = judging.planning.plan

    def stumble(feature, snapshot, want):
        if snapshot.boot_id == "odd":
            raise ValueError("\x1b[31m" + "9" * 5000)
        return plan(feature, snapshot, want)

    monkeypatch.setattr(judging.planning, "plan", stumble)
    collected = [Collected("gpu01", replace(in_sync(), boot_id="odd")), Collected("gpu02", in_sync())]
    found = audit(collected, {"gpu01": WANTS["gpu01"], "gpu02": WANTS["gpu01"]})
    rows = found.hosts["gpu01"].rows
    assert [(row.kind, row.code, row.feature) for row in rows] == [
        (Kind.UNKNOWN, "host.stumbled", feature) for feature in WANTS["gpu01"]
    ]
    assert rows[0].reason.startswith("ValueError at test_judge.py:")
    assert rows[0].reason.isprintable()
    assert len(rows[0].reason) < 300
    assert {host: report.state for host, report in found.hosts.items()} == {
        "gpu01": State.UNKNOWN,
        "gpu02": State.IN_SYNC,
    }


def test_what_the_comparison_of_hosts_stumbles_over_is_its_own_host_s_matter(monkeypatch):
    def stumble(self, host, snapshot, wants, profile):
        if host == "gpu01":
            raise ValueError("odd")

    monkeypatch.setattr(Facts, "note", stumble)
    found = audit(
        [Collected("gpu01", in_sync()), Collected("gpu02", in_sync())],
        dict.fromkeys(("gpu01", "gpu02"), WANTS["gpu01"]),
    )
    assert [(row.code, row.feature) for row in found.hosts["gpu01"].rows] == [("host.stumbled", "")]
    assert found.hosts["gpu02"].rows == ()
    assert found.exit_code == 3


def test_what_one_feature_stumbled_over_on_the_node_costs_no_other_its_values():
    snapshot = in_sync()
    left = {name: seen for name, seen in snapshot.seen.items() if name != "roce"}
    found = judge(
        Collected("gpu01", replace(snapshot, seen=left, stumbles={"roce": "KeyError at x.py:1"})), WANTS["gpu01"]
    )
    assert [(row.code, row.feature, row.reason) for row in found.rows] == [
        ("host.stumbled", "roce", "KeyError at x.py:1")
    ]
    assert (found.state, found.work) == (State.UNKNOWN, {"node": Work.NONE, "roce": Work.SOME})


def test_a_snapshot_of_an_older_wish_does_not_stand_for_the_new_one():
    snapshot = in_sync()
    older = replace(snapshot, seen={**snapshot.seen, "roce": replace(snapshot.seen["roce"], ports={})})
    found = judge(Collected("gpu01", older), WANTS["gpu01"])
    assert [row.code for row in found.rows] == ["host.no-wish"]
    assert (found.state, found.work["roce"]) == (State.UNKNOWN, Work.SOME)


def test_a_snapshot_without_the_feature_does_not_stand_for_it():
    snapshot = in_sync()
    older = replace(snapshot, seen={"node": snapshot.seen["node"]})
    assert judge(Collected("gpu01", older), WANTS["gpu01"]).state is State.UNKNOWN
