"""Verify on real nodes: it sees each fault by itself, and what a mistake in the node core hides from the audit."""

import shutil

import pytest

from .fabric import RAILS, REPOSITORY, Fabric

pytestmark = pytest.mark.lab

# What each drift of a RoCE port makes fail. Global pause and PFC overwrite one another.
DRIFTS = {
    "pfc-off": {"pfc"},
    "wrong-priority": {"dscp-map"},
    "global-pause-on": {"pause", "pfc"},
    "ecn-np-off": {"ecn"},
    "tos-reset": {"rdma-cm"},
    "ets-lost": {"ets"},
    "dscp-flushed": {"dscp-map"},
    "cnp-changed": {"cnp"},
    "traffic-class-cleared": {"traffic-class"},
}

# A mistake in the core by the check that must fail for it: a parser that reads what is wanted whatever there is.
MISTAKES = {
    "pfc": ("dcb.py", "def _parse_pfc(data):\n    return (3,)\n"),
    "dscp-map": (
        "dcb.py",
        "def _parse_app(data):\n    return tuple((d, {26: 3, 48: 6}.get(d, 0)) for d in range(64))\n",
    ),
    "traffic-class": ("sysfs.py", "def read_traffic_class(host, rdma):\n    return 106, ()\n"),
}
MISTAKEN, SOUND = "gpu01", "gpu02"


@pytest.fixture(scope="module")
def fabric(tmp_path_factory):
    """A node in factory state, and one that is as declared."""
    made = Fabric(tmp_path_factory.mktemp("verify"), 2)
    try:
        made.up()
        assert made.site("--limit", SOUND).returncode == 0
        yield made
    finally:
        made.lab.down()


def verify(fabric, node, rc):
    """What is not a pass, as {(port, check): status}."""
    results = fabric.json("verify", "--limit", node, rc=rc)["results"]
    assert {result["host"] for result in results} == {node}
    return {(r["port"], r["check"]): r["status"] for r in results if r["status"] != "pass"}


def test_mistakes_in_parsers_of_the_core_are_clean_to_the_audit_but_not_to_verify(fabric, tmp_path):
    for name in ("gpufab_cli", "ansible_collections", "roles", "playbooks"):
        shutil.copytree(REPOSITORY / name, tmp_path / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for file, mistake in MISTAKES.values():
        with (tmp_path / "gpufab_cli/module_utils/roce" / file).open("a") as core:
            core.write(f"\n\n{mistake}")
    fabric.env = {"PYTHONPATH": str(tmp_path)}
    try:
        done = fabric.site("--limit", MISTAKEN)
        assert done.returncode == 0, done.stdout
        assert "changed=2" in done.stdout
        fabric.cli("audit", "--limit", MISTAKEN, rc=0)
        failing = {(f"compute/{rail}", check): "fail" for rail in range(RAILS) for check in MISTAKES}
        assert verify(fabric, MISTAKEN, 1) == failing
    finally:
        fabric.env = {}


def test_every_drift_is_told_by_its_own_check_and_repaired_it_is_told_no_more(fabric):
    wanted = {}
    for number, (fault, checks) in enumerate(DRIFTS.items()):
        rail = number % RAILS
        fabric.lab.break_(SOUND, fault, port=str(rail))
        wanted |= {(f"compute/{rail}", check): "fail" for check in checks}
    fabric.lab.writes(SOUND, clear=True)
    assert verify(fabric, SOUND, 1) == wanted
    assert fabric.lab.writes(SOUND) == []
    assert fabric.roce("--limit", SOUND).returncode == 0
    assert verify(fabric, SOUND, 0) == {}


@pytest.mark.parametrize(
    "faults",
    [
        {
            ("tool-missing", "dcb"): {"dscp-map", "pfc", "ets"},
            ("tool-hangs", "ethtool"): {"pause"},
            ("no-ecn-sysfs", ""): {"ecn", "cnp", "traffic-class"},
        },
        {("garbage-output", "rdma"): {"rdma", "gid", "traffic-class", "rdma-cm"}},
    ],
    ids=["three", "rdma"],
)
def test_what_cannot_be_read_is_unknown(fabric, faults):
    for fault, argument in faults:
        fabric.lab.break_(SOUND, fault, argument)
    try:
        found = verify(fabric, SOUND, 3)
    finally:
        fabric.lab.repair(SOUND)
    checks = set().union(*faults.values())
    assert found == {(f"compute/{rail}", check): "unknown" for rail in range(RAILS) for check in checks}


def test_without_root_the_kept_wishes_are_unknown(fabric):
    fabric.lab.break_(SOUND, "no-root")
    try:
        assert verify(fabric, SOUND, 3) == {("", "desired"): "unknown"}
    finally:
        fabric.lab.repair(SOUND)


def test_a_node_that_is_off_is_told_once(fabric):
    fabric.lab.break_(SOUND, "node-stopped")
    try:
        assert verify(fabric, SOUND, 3) == {("", "reachable"): "unknown"}
    finally:
        fabric.lab.repair(SOUND)
