"""Audit and apply over real SSH and real Ansible: from factory state to in sync, and every way not to answer."""

import subprocess

import pytest

from tests.operator import ALLOW

from .fabric import Fabric

pytestmark = pytest.mark.lab


@pytest.fixture(scope="module")
def fabric(tmp_path_factory):
    made = Fabric(tmp_path_factory.mktemp("apply"), 2)
    try:
        yield made.up()
    finally:
        made.lab.down()


PATIENT = ("--timeout", "180")  # the nodes and everything else share this machine's cores


@pytest.fixture(scope="module")
def applied(fabric):
    """The fabric as declared; the way there is the first test."""
    dry = fabric.json("apply", *PATIENT, "--check", "--allow", ALLOW, rc=1)
    made = fabric.json("apply", *PATIENT, "--allow", ALLOW, rc=0)
    return fabric, dry, made


@pytest.fixture
def healthy(applied):
    """All in sync; the test that leaves drift behind is the last."""
    fabric = applied[0]
    yield fabric
    for name in fabric.names:
        fabric.lab.repair(name)


def steps(report, status):
    return {
        (host, step["name"])
        for host, outcome in report["hosts"].items()
        for step in outcome["steps"]
        if step["status"] == status
    }


def drift(report):
    return {
        (host, row["rail"], row["name"])
        for host, found in report["hosts"].items()
        for row in found["rows"]
        if row["kind"] == "drift"
    }


def test_what_a_dry_run_promises_is_what_a_run_makes(applied):
    _, dry, made = applied
    assert steps(made, "made") == steps(dry, "would-make") != set()
    assert made["audit"]["exit_code"] == 0


def test_a_second_apply_starts_no_ansible(healthy):
    report = healthy.json("apply", *PATIENT, rc=0)
    assert (report["rounds"], report["hosts"]) == (0, {})


def test_a_full_apply_starts_ansible_which_changes_nothing(healthy):
    for name in healthy.names:
        healthy.lab.writes(name, clear=True)
    report = healthy.json("apply", *PATIENT, "--full", "--allow", ALLOW, rc=0)
    assert report["rounds"] != 0
    assert [step for outcome in report["hosts"].values() for step in outcome["steps"]] == []
    assert {name: healthy.lab.writes(name) for name in healthy.names} == {name: [] for name in healthy.names}


def test_the_audit_names_exactly_what_was_broken_and_apply_mends_it(healthy):
    healthy.lab.break_("gpu01", "wrong-priority", port="0")
    healthy.lab.break_("gpu02", "cnp-changed", port="1")
    found = drift(healthy.json("audit", *PATIENT, rc=1))
    assert found == {
        ("gpu01", "compute/0", "dscp_priority"),
        ("gpu02", "compute/1", "cnp_dscp"),
        ("gpu02", "compute/1", "cnp_priority"),
    }
    report = healthy.json("apply", *PATIENT, "--allow", "traffic", rc=0)
    assert steps(report, "made") == {("gpu01", "roce compute/0"), ("gpu02", "roce compute/1")}


def test_saved_snapshots_are_judged_without_the_nodes(healthy):
    now = healthy.json("audit", *PATIENT, "--save", "then", rc=0)
    healthy.lab.break_("gpu01", "no-root")
    assert healthy.json("audit", "--from", "then", rc=0) == now


@pytest.mark.parametrize(
    ("fault", "kind", "rc"),
    [("node-stopped", "unreachable", 3), ("no-root", "no-root", 3)],
)
def test_a_node_that_does_not_answer_holds_up_no_other(healthy, fault, kind, rc):
    healthy.lab.break_("gpu01", fault)
    report = healthy.json("audit", *PATIENT, rc=rc)
    hosts = report["hosts"]
    assert hosts["gpu01"]["state"] == "unknown"
    assert f"host.{kind}" in str(report)
    assert hosts["gpu02"]["state"] == "in-sync"


CLOSED = """\
printf '#!/bin/sh\\necho Closed for maintenance\\n' > /bin/closed
chmod 755 /bin/closed
echo /bin/closed >> /etc/shells
usermod --shell /bin/closed ops
"""


def test_a_shell_that_babbles_and_ends_is_garbage(healthy):
    healthy.sh("gpu01", CLOSED)
    try:
        failure = healthy.json("audit", *PATIENT, "--limit", "gpu01", rc=3)["hosts"]["gpu01"]["failure"]
        assert (failure["code"], failure["message"]) == ("host.garbage", "printed 'Closed for maintenance'")
    finally:
        container = healthy.lab.node("gpu01").container
        subprocess.run(["podman", "exec", container, "usermod", "--shell", "/bin/bash", "ops"], check=True)


def test_plain_ansible_from_anywhere_says_the_same(healthy, tmp_path):
    healthy.lab.break_("gpu02", "ets-lost", port="0")
    done = healthy.site("--check", "--diff")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "changed=1" in next(line for line in done.stdout.splitlines() if line.startswith("gpu02"))
    assert "changed=0" in next(line for line in done.stdout.splitlines() if line.startswith("gpu01"))
    assert "Could not match supplied host pattern" not in done.stdout + done.stderr
