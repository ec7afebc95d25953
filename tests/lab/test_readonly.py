"""An audit only looks: nothing reaches the hardware, and no file on the node changes."""

import pytest

from .fabric import Fabric

pytestmark = pytest.mark.lab

# Everything that may persist; /run and /var/log belong to systemd and sshd.
SUMS = (
    "find / -xdev -type f -not -path '/proc/*' -not -path '/sys/*' -not -path '/run/*' -not -path '/var/log/*' "
    "-printf '%p %s %T@ %C@ %m\\n' | sort; find /etc /var/lib /usr/local -xdev -type d | sort"
)


@pytest.fixture(scope="module")
def fabric(tmp_path_factory):
    made = Fabric(tmp_path_factory.mktemp("readonly"), 2)
    try:
        yield made.up()
    finally:
        made.lab.down()


@pytest.mark.parametrize("state", ["factory", "converged"])
def test_an_audit_leaves_no_trace(fabric, state):
    if state == "converged":
        done = fabric.site()
        assert done.returncode == 0, done.stdout
    before = {name: fabric.sh(name, SUMS) for name in fabric.names}
    for name in fabric.names:
        fabric.lab.writes(name, clear=True)
    fabric.cli("audit", rc=1 if state == "factory" else 0)
    assert "compute/0" in fabric.cli("topo", "gpu01", rc=None).stdout
    assert {name: fabric.lab.writes(name) for name in fabric.names} == {name: [] for name in fabric.names}
    assert {name: fabric.sh(name, SUMS) for name in fabric.names} == before


def test_a_dry_run_leaves_no_trace_but_ansible_s_own_temporary_files(fabric):
    fabric.lab.break_("gpu01", "pfc-off")
    try:
        before = fabric.sh("gpu01", SUMS + " | grep -v /.ansible")
        fabric.lab.writes("gpu01", clear=True)
        done = fabric.site("--check", "--diff", "--limit", "gpu01")
        assert done.returncode == 0, done.stdout
        assert "changed=1" in done.stdout
        assert fabric.lab.writes("gpu01") == []
        assert fabric.sh("gpu01", SUMS + " | grep -v /.ansible") == before
    finally:
        assert fabric.site("--limit", "gpu01").returncode == 0


def test_hosts_that_cannot_be_asked_are_named_and_hold_nobody_up(fabric):
    fabric.lab.break_("gpu01", "no-root")
    try:
        report = fabric.json("audit", rc=None)
        text = str(report)
        assert "host.no-root" in text
        assert [host["state"] for host in report["hosts"].values()] == ["unknown", "in-sync"]
    finally:
        fabric.lab.repair("gpu01")
    fabric.lab.break_("gpu02", "node-stopped")
    try:
        done = fabric.cli("audit", rc=3)
        assert "host.unreachable" in done.stdout
    finally:
        fabric.lab.repair("gpu02")
    fabric.cli("audit", rc=0)


@pytest.mark.parametrize(
    ("fault", "tool", "reason"),
    [
        ("tool-missing", "dcb", "dcb is not installed"),
        ("garbage-output", "dcb", "no known release"),
        ("tool-hangs", "ethtool", "did not answer"),
    ],
)
def test_a_tool_that_does_not_answer_makes_values_unknown_and_nothing_else(fabric, fault, tool, reason):
    fabric.lab.break_("gpu01", fault, tool)
    try:
        done = fabric.cli("audit", "--limit", "gpu01", rc=3)
        assert reason in done.stdout
        assert "drifted" not in done.stdout.splitlines()[-1]
    finally:
        fabric.lab.repair("gpu01")
