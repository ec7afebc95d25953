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


@pytest.fixture(scope="module")
def fabric(tmp_path_factory):
    """A node in factory state, which the first test leaves as a core full of mistakes would."""
    made = Fabric(tmp_path_factory.mktemp("verify"), 1)
    try:
        yield made.up()
    finally:
        made.lab.down()


@pytest.fixture(scope="module")
def sound(fabric):
    """The node as declared."""
    done = fabric.site()
    assert done.returncode == 0, done.stdout
    return fabric


def verify(fabric, rc):
    """What is not a pass, as {(port, check): status}."""
    results = fabric.json("verify", rc=rc)["results"]
    assert {result["host"] for result in results} == {"gpu01"}
    return {(r["port"], r["check"]): r["status"] for r in results if r["status"] != "pass"}


def test_mistakes_in_parsers_of_the_core_are_clean_to_the_audit_but_not_to_verify(fabric, tmp_path):
    for name in ("gpufab_cli", "ansible_collections", "roles", "playbooks"):
        shutil.copytree(REPOSITORY / name, tmp_path / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
    for file, mistake in MISTAKES.values():
        with (tmp_path / "gpufab_cli/module_utils/roce" / file).open("a") as core:
            core.write(f"\n\n{mistake}")
    fabric.env = {"PYTHONPATH": str(tmp_path)}
    try:
        done = fabric.site()
        assert done.returncode == 0, done.stdout
        assert "changed=2" in done.stdout
        fabric.cli("audit", rc=0)
        failing = {(f"compute/{rail}", check): "fail" for rail in range(RAILS) for check in MISTAKES}
        assert verify(fabric, 1) == failing
    finally:
        fabric.env = {}


def test_every_drift_is_told_by_its_own_check_and_repaired_it_is_told_no_more(sound):
    wanted = {}
    for number, (fault, checks) in enumerate(DRIFTS.items()):
        rail = number % RAILS
        sound.lab.break_("gpu01", fault, port=str(rail))
        wanted |= {(f"compute/{rail}", check): "fail" for check in checks}
    sound.lab.writes("gpu01", clear=True)
    assert verify(sound, 1) == wanted
    assert sound.lab.writes("gpu01") == []
    assert sound.roce().returncode == 0
    assert verify(sound, 0) == {}


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
def test_what_cannot_be_read_is_unknown(sound, faults):
    for fault, argument in faults:
        sound.lab.break_("gpu01", fault, argument)
    try:
        found = verify(sound, 3)
    finally:
        sound.lab.repair("gpu01")
    checks = set().union(*faults.values())
    assert found == {(f"compute/{rail}", check): "unknown" for rail in range(RAILS) for check in checks}


def test_without_root_the_kept_wishes_are_unknown(sound):
    sound.lab.break_("gpu01", "no-root")
    try:
        assert verify(sound, 3) == {("", "desired"): "unknown"}
    finally:
        sound.lab.repair("gpu01")


def test_a_node_that_is_off_is_told_once(sound):
    sound.lab.break_("gpu01", "node-stopped")
    try:
        assert verify(sound, 3) == {("", "reachable"): "unknown"}
    finally:
        sound.lab.repair("gpu01")
