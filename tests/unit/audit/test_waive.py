"""What is accepted stays visible and leaves its host in sync, until the day after its last."""

import datetime

import pytest

from gpufab_cli.audit.audit import AuditReport
from gpufab_cli.audit.collect import Failed, Failure
from gpufab_cli.audit.judge import HostReport, Kind, Place, Row, State
from gpufab_cli.audit.waive import NO_WAIVERS, Waivers
from gpufab_cli.report.audit.json import row_data
from gpufab_cli.report.audit.lines import lines
from gpufab_cli.report.audit.table import summary
from gpufab_cli.spec.accept import Waiver

DAY = datetime.date(2027, 1, 31)
MTU = Row(Kind.FINDING, "roce.mtu", "roce", Place("0000:18:00.0", "compute/0"), reason="MTU 1500, wanted 9000")
PFC = Row(Kind.DRIFT, "roce.pfc", "roce", Place("0000:18:00.0", "compute/0", "pfc"), (), (3,))
OTHER = Row(Kind.FINDING, "roce.mtu", "roce", Place("0000:28:00.0", "compute/1"), reason="MTU 1500, wanted 9000")


def waiver(code="roce.mtu", hosts="gpu[01-02]", expires="2027-01-31", **more):
    return Waiver(code=code, hosts=hosts, reason="the switch is due", expires=expires, **more)


def waived(*rows, waivers=None, host="gpu01", today=DAY):
    return Waivers.of((waiver(),) if waivers is None else waivers, today).apply(HostReport(host, rows))


def test_an_accepted_row_stays_and_says_so():
    report = waived(MTU)
    (row,) = report.rows
    assert row.accepted == "until 2027-01-31: the switch is due"
    assert report.state is State.IN_SYNC
    assert row_data(row)["accepted"] == row.accepted
    assert lines(report.rows)[0].text == "MTU 1500, wanted 9000 (accepted until 2027-01-31: the switch is due)"
    assert summary(AuditReport({"gpu01": report})) == "1 host: 1 in sync; values: 1 accepted"


def test_everything_else_still_counts():
    assert waived(MTU, PFC).state is State.DRIFT
    assert waived(MTU, host="gpu03").state is State.DRIFT
    assert waived(PFC).rows == (PFC,)


@pytest.mark.parametrize("kind", [Kind.DRIFT, Kind.BLOCKED, Kind.PENDING])
def test_whatever_is_known_can_be_accepted(kind):
    row = Row(kind, "roce.pfc", "roce", PFC.place, (), (3,))
    assert waived(row, waivers=[waiver("roce.pfc")]).state is State.IN_SYNC


def test_what_is_unknown_cannot_be_accepted():
    row = Row(Kind.UNKNOWN, "roce.pfc", "roce", PFC.place, reason="no dcb")
    assert waived(row, waivers=[waiver("roce.pfc")]).rows == (row,)


def test_one_rail_can_be_accepted_alone():
    rows = waived(MTU, OTHER, waivers=[waiver(rail="compute/1")]).rows
    assert [bool(row.accepted) for row in rows] == [False, True]


def test_a_day_later_it_is_drift_again_and_the_report_says_why():
    report = waived(MTU, OTHER, today=DAY + datetime.timedelta(days=1))
    assert report.state is State.DRIFT
    assert report.rows[:2] == (MTU, OTHER)
    assert [(row.code, row.reason) for row in report.rows[2:]] == [
        ("waiver.expired", "roce.mtu was accepted until 2027-01-31: the switch is due")
    ]


def test_an_expired_waiver_that_nothing_needs_is_not_mentioned():
    late = DAY + datetime.timedelta(days=1)
    assert waived(PFC, today=late).rows == (PFC,)
    renewed = waived(MTU, waivers=[waiver(), waiver(expires="2027-03-01")], today=late)
    assert [row.accepted for row in renewed.rows] == ["until 2027-03-01: the switch is due"]


def test_a_host_that_does_not_answer_is_not_accepted():
    report = HostReport("gpu01", failure=Failure(Failed.UNREACHABLE, "no route"))
    assert Waivers.of([waiver()], DAY).apply(report) is report
    assert NO_WAIVERS.apply(report) is report
