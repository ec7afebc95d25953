"""The promise: audit's drift = check mode's changes = what apply changes; then nothing is left.

Ten nodes with one drift each, in one pass. That a reboot keeps it: test_roce_stacks.py.
"""

import json
import random

import pytest

from gpufab_cli.lab.faults import KINDS
from tests.operator import ALLOW

from .fabric import RAILS, Fabric

pytestmark = pytest.mark.lab

NODES = 10
PATIENT = ("--timeout", "180")  # ten nodes share two cores
DRIFTS = (
    *("pfc-off", "wrong-priority", "global-pause-on", "ecn-np-off", "tos-reset"),
    *("driver-reload", "ets-lost", "dscp-flushed", "cnp-changed", "traffic-class-cleared"),
)


@pytest.fixture(scope="module")
def fabric(tmp_path_factory):
    made = Fabric(tmp_path_factory.mktemp("invariant"), NODES)
    try:
        made.up().cli("apply", "--allow", ALLOW, *PATIENT)
        yield made
    finally:
        made.lab.down()


def changes_of_audit(report):
    return {
        (host, row["device"], row["code"], json.dumps(row["current"]), json.dumps(row["desired"]))
        for host, found in report["hosts"].items()
        for row in found["rows"]
        if row["kind"] == "drift" and "device" in row
    }


def changes_of_apply(report, status):
    return {
        (host, step["device"], change["code"], json.dumps(change["current"]), json.dumps(change["desired"]))
        for host, outcome in report["hosts"].items()
        for step in outcome["steps"]
        if step["status"] == status and step["device"]
        for change in step["changes"]
    }


def three_ways(fabric):
    """The same set of changes, by audit, by check mode and by apply, whose own last audit finds nothing."""
    audited = changes_of_audit(fabric.json("audit", *PATIENT, rc=1))
    checked = changes_of_apply(fabric.json("apply", "--check", "--allow", ALLOW, *PATIENT, rc=1), "would-make")
    made = fabric.json("apply", "--allow", ALLOW, *PATIENT, rc=0)
    applied = changes_of_apply(made, "made")
    assert audited == checked == applied
    assert made["audit"]["exit_code"] == 0
    return audited


def nothing_is_left(fabric):
    for name in fabric.names:
        fabric.lab.writes(name, clear=True)
    again = fabric.json("apply", "--full", "--allow", ALLOW, *PATIENT, rc=0)
    assert [step for outcome in again["hosts"].values() for step in outcome["steps"]] == []
    assert {name: fabric.lab.writes(name) for name in fabric.names} == {name: [] for name in fabric.names}


def test_one_drift_a_node(fabric):
    assert len(DRIFTS) == NODES
    assert set(DRIFTS) <= set(KINDS)
    chance = random.Random(7)
    for name, drift in zip(fabric.names, DRIFTS, strict=True):
        fabric.lab.break_(name, drift, port=str(chance.randrange(RAILS)))
    changes = three_ways(fabric)
    assert {host for host, *_ in changes} == set(fabric.names)
    touched = {(host, device) for host, device, *_ in changes}
    assert len(touched) == NODES - 1 + RAILS  # a driver reload is on every port, the others on one each
    nothing_is_left(fabric)
