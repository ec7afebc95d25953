"""Check mode on a node without RDMA tools shows every wanted value, unknown where it cannot be read, and ends well."""

import pytest

from .fabric import RAILS, Fabric

pytestmark = pytest.mark.lab

TOOLS = ("dcb", "ethtool", "rdma", "devlink")
SETTINGS = (
    *("pause", "trust", "dscp_priority", "pfc", "prio_tc", "tc_tsa", "tc_bw"),
    *("ecn_np", "ecn_rp", "cnp_dscp", "cnp_priority", "traffic_class", "rdma_cm_tos", "rdma_cm_mode"),
)


@pytest.fixture(scope="module")
def fabric(tmp_path_factory):
    made = Fabric(tmp_path_factory.mktemp("fresh"), 1)
    try:
        made.up()
        for tool in TOOLS:
            made.lab.break_("gpu01", "tool-missing", tool)
        for fault in ("no-ecn-sysfs", "no-rdma-cm"):
            made.lab.break_("gpu01", fault)
        yield made
    finally:
        made.lab.down()


def test_check_mode_shows_everything_and_does_not_fail(fabric):
    done = fabric.site("--check", "--diff")
    assert done.returncode == 0, done.stdout
    shown = [line[1:] for line in done.stdout.splitlines() if line.startswith("-")]
    for setting in SETTINGS:
        lines = [line for line in shown if f" {setting}: " in line]
        assert len(lines) == RAILS, setting
        assert all("UNKNOWN(" in line for line in lines), lines
    wanted = [line[1:] for line in done.stdout.splitlines() if line.startswith("+")]
    assert sum(" pfc: 3" in line for line in wanted) == RAILS
    assert fabric.lab.writes("gpu01") == []


def test_the_audit_says_unknown_and_neither_drift_nor_pass(fabric):
    report = fabric.json("audit", rc=1)  # gpufab's own files are missing, and known to be
    rows = report["hosts"]["gpu01"]["rows"]
    assert {row["kind"] for row in rows if row["feature"] == "roce" and "device" in row} == {"unknown"}


def test_a_real_run_fails_by_name_and_writes_nothing_to_the_ports(fabric):
    done = fabric.site()
    assert done.returncode == 2
    assert "roce compute/0: unknown: ethtool is not installed" in done.stdout
    assert fabric.lab.writes("gpu01") == []
