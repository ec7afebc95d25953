"""The promise: audit's drift = check mode's changes = what apply changes; then nothing is left.

Each drift on a port of its own, all in one pass. That a run after it changes nothing: test_apply.py and
test_roce_stacks.py, which also shows that a reboot keeps it.
"""

import json

import pytest

from gpufab_cli.lab.faults import KINDS

from .fabric import ALLOW, RAILS, Fabric

pytestmark = pytest.mark.lab

PATIENT = ("--timeout", "180")  # the nodes share two cores
RELOADED = "gpu01"  # a driver's reload is on every port
DRIFTS = (
    *("pfc-off", "wrong-priority", "global-pause-on", "ecn-np-off", "tos-reset"),
    *("ets-lost", "dscp-flushed", "cnp-changed", "traffic-class-cleared"),
)
NODES = 1 + -(-len(DRIFTS) // RAILS)


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
    assert changes_of_audit(made["audit"]) == set()
    return audited


def test_one_drift_a_port(fabric):
    assert {*DRIFTS, "driver-reload"} <= set(KINDS)
    fabric.lab.break_(RELOADED, "driver-reload")
    others = [(name, rail) for name in fabric.names if name != RELOADED for rail in range(RAILS)]
    for (name, rail), drift in zip(others, DRIFTS, strict=False):
        fabric.lab.break_(name, drift, port=str(rail))
    touched = {(host, device) for host, device, *_ in three_ways(fabric)}
    assert {host for host, _ in touched} == set(fabric.names)
    assert len(touched) == len(DRIFTS) + RAILS
