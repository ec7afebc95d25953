"""An audit only looks: nothing reaches the hardware, and no file on the node changes."""

import pytest

from .fabric import Fabric

pytestmark = pytest.mark.lab

# Everything that may persist; /run and /var/log belong to systemd and sshd.
SUMS = (
    "find / -xdev -type f -not -path '/proc/*' -not -path '/sys/*' -not -path '/run/*' -not -path '/var/log/*' "
    "-printf '%p %s %T@ %C@ %m\\n' | sort; find /etc /var/lib /usr/local -xdev -type d | sort"
)
NOT_ANSIBLE = " | grep -v /.ansible"


@pytest.fixture(scope="module")
def fabric(tmp_path_factory):
    made = Fabric(tmp_path_factory.mktemp("readonly"), 1)
    try:
        yield made.up()
    finally:
        made.lab.down()


@pytest.mark.parametrize("state", ["factory", "converged"])
def test_an_audit_leaves_no_trace_and_a_dry_run_only_ansible_s_own_temporary_files(fabric, state):
    if state == "converged":
        done = fabric.site()
        assert done.returncode == 0, done.stdout
    before = fabric.sh("gpu01", SUMS)
    fabric.lab.writes("gpu01", clear=True)
    fabric.cli("audit", rc=1 if state == "factory" else 0)
    assert "compute/0" in fabric.cli("topo", "gpu01", rc=None).stdout
    assert fabric.lab.writes("gpu01") == []
    assert fabric.sh("gpu01", SUMS) == before
    before = fabric.sh("gpu01", SUMS + NOT_ANSIBLE)
    done = fabric.site("--check", "--diff")
    assert done.returncode == 0, done.stdout
    assert ("changed=0" in done.stdout) == (state == "converged")
    assert fabric.lab.writes("gpu01") == []
    assert fabric.sh("gpu01", SUMS + NOT_ANSIBLE) == before


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
