"""What is refused is left exactly as it was; what the node depends on needs its own consent."""

import json

import pytest

from .fabric import RAILS, Fabric

pytestmark = pytest.mark.lab

STATE = """\
for path in /sys/class/infiniband/*/device/net/en*; do
    port=$(basename "$path")
    echo "= $port"
    for what in pfc app ets; do dcb -j $what show dev $port; done
    ethtool -a $port
    ethtool -S $port | grep link_down
done
"""


@pytest.fixture(scope="module")
def fabric(tmp_path_factory):
    made = Fabric(tmp_path_factory.mktemp("consent"), 1)
    try:
        yield made.up()
    finally:
        made.lab.down()


def state(fabric):
    """What the tools say of each port, by its name."""
    told = fabric.sh("gpu01", STATE).split("= ")[1:]
    found = dict(text.split("\n", 1) for text in told)
    assert len(found) == RAILS
    return found


def hardware_writes(fabric):
    return fabric.lab.writes("gpu01", clear=True)


def test_without_consent_the_port_is_exactly_as_it_was_and_the_wish_is_kept(fabric):
    before = state(fabric)
    hardware_writes(fabric)
    done = fabric.site(allow="")
    assert done.returncode == 0, done.stdout
    assert state(fabric) == before
    assert hardware_writes(fabric) == []
    assert json.loads(fabric.sh("gpu01", "cat /etc/gpufab/desired.d/roce.json"))["feature"] == "roce"


def test_half_a_consent_makes_no_half_class(fabric):
    before = state(fabric)
    assert fabric.roce(allow="traffic").returncode == 0
    assert fabric.roce(allow="link-flap").returncode == 0
    assert state(fabric) == before


def test_a_busy_node_is_left_alone(fabric):
    before = state(fabric)
    fabric.lab.break_("gpu01", "verbs-busy")
    try:
        assert fabric.roce().returncode == 0
        assert state(fabric) == before
    finally:
        fabric.lab.repair("gpu01")


def test_the_port_that_carries_ssh_is_left_out_and_the_others_are_made(fabric):
    fabric.lab.break_("gpu01", "ssh-over-rail", port="1")
    try:
        before = state(fabric)
        assert fabric.roce().returncode == 0
        after = state(fabric)
        assert [name for name in before if before[name] == after[name]] == [list(before)[1]]
        report = fabric.json("audit", rc=1)
        assert {row["rail"] for host in report["hosts"].values() for row in host["rows"] if row.get("rail")} == {
            "compute/1"
        }
        assert fabric.roce(allow="traffic,link-flap,management-port").returncode == 0
    finally:
        fabric.lab.repair("gpu01")
    fabric.cli("audit", rc=0)


def test_a_tool_that_lies_is_a_failure_by_name_and_is_undone(fabric):
    fabric.lab.break_("gpu01", "pfc-off", port="1")
    fabric.lab.break_("gpu01", "tool-lies", "dcb")
    try:
        done = fabric.roce()
        assert done.returncode == 2
        assert "did not stick" in done.stdout
        assert "pfc" in done.stdout
    finally:
        fabric.lab.repair("gpu01")


def test_a_step_that_fails_in_the_middle_is_undone(fabric):
    fabric.lab.break_("gpu01", "driver-reload")
    before = state(fabric)
    fabric.lab.break_("gpu01", "fail-at-write", "3")
    done = fabric.roce()
    assert done.returncode == 2
    assert "undone" in done.stdout
    after = state(fabric)
    strip = [text.split("link_down")[0] for text in after.values()]
    assert strip == [text.split("link_down")[0] for text in before.values()]
    journal = fabric.sh("gpu01", "tail -n 1 /var/lib/gpufab/journal.jsonl")
    assert json.loads(journal)["event"] == "undone"
    fabric.lab.repair("gpu01")
    assert fabric.roce().returncode == 0
    fabric.cli("audit", rc=0)
