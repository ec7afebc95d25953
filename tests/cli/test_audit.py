"""``gpufab audit``: every kind of result, as it is printed."""

import json
import stat

import pytest

from gpufab_cli.errors import Exit
from gpufab_cli.module_utils.change import ABSENT, Unknown
from tests.cli.expected import expected
from tests.cli.nodes import hanging, unreachable
from tests.snapshots import HOSTS, in_sync, node_seen

EXPLAIN = "hint: gpufab explain CODE says what a code means and what to do\n"
MAP = tuple((dscp, 4 if dscp == 26 else 6 if dscp == 48 else 0) for dscp in range(64))


def test_in_sync(gpufab_on):
    assert gpufab_on("audit") == (Exit.IN_SYNC, "3 hosts: 3 in sync\n", "")


def test_drift_of_ports_and_hosts_alike_is_said_once(gpufab_on, nodes):
    nodes.answers["gpu01"] = in_sync("gpu01", ports={0: {"pfc": ()}, 1: {"pfc": ()}})
    for host in ("gpu02", "gpu03"):
        nodes.answers[host] = in_sync(host, ports={1: {"dscp_priority": MAP}})
    code, out, err = gpufab_on("audit")
    assert (code, err) == (Exit.DRIFT, EXPLAIN)
    assert out == expected("audit-drift", out)


def test_everything_there_is_to_say_of_a_host(gpufab_on, nodes):
    nodes.answers["gpu01"] = in_sync(
        "gpu01",
        ports={0: {"pfc": Unknown("dcb is not installed"), "cnp_dscp": 0}, 1: {"traffic_class": 106}},
        desired=ABSENT,
        node=node_seen(restore_disabled=True, failed_units=("gpufab-restore@late.service: timeout",)),
        lldpad="77",
    )
    code, out, _ = gpufab_on("audit", "--limit", "gpu01")
    assert code == Exit.DRIFT
    assert out == expected("audit-everything", out)


def test_each_way_not_to_answer(gpufab_on, nodes):
    nodes.answers |= {"gpu01": unreachable(), "gpu02": hanging(), "gpu03": "Maintenance!\n"}
    code, out, err = gpufab_on("audit")
    assert (code, err) == (Exit.UNKNOWN, EXPLAIN)
    assert out == expected("audit-no-answer", out)


def test_drift_somewhere_outweighs_what_is_unknown(gpufab_on, nodes):
    nodes.answers |= {"gpu01": unreachable(), "gpu02": in_sync("gpu02", ports={0: {"cnp_dscp": 0}})}
    assert gpufab_on("audit")[0] == Exit.DRIFT


def test_no_root(gpufab_on, nodes):
    nodes.no_root.add("gpu02")
    code, out, _ = gpufab_on("audit")
    assert code == Exit.UNKNOWN
    assert "unknown: sudo: a password is required" in out


def test_a_limit(gpufab_on, nodes):
    code, out, _ = gpufab_on("audit", "--limit", "gpu[01-02]")
    assert (code, out, sorted(nodes.asked)) == (Exit.IN_SYNC, "2 hosts: 2 in sync\n", ["gpu01", "gpu02"])


def test_a_limit_that_names_no_host(gpufab_on):
    error = "error: no active host matches 'gpu4'\nhint: did you mean gpu03?\n"
    assert gpufab_on("audit", "--limit", "gpu01,gpu4") == (Exit.USAGE, "", error)


def test_json(gpufab_on, nodes):
    nodes.answers["gpu01"] = in_sync("gpu01", ports={0: {"pfc": (), "cnp_dscp": Unknown("no ecn/")}})
    nodes.answers["gpu02"] = unreachable()
    code, out, err = gpufab_on("audit", "--format", "json")
    data = json.loads(out)
    assert (code, err) == (Exit.DRIFT, "")
    assert (data["format"], data["exit_code"]) == (1, 1)
    assert data["hosts"]["gpu01"] == {
        "state": "drift",
        "features": {"node": "none", "roce": "some"},
        "rows": [
            {
                "kind": "drift",
                "code": "roce.pfc",
                "severity": "critical",
                "feature": "roce",
                "device": "0000:18:00.0",
                "rail": "compute/0",
                "name": "pfc",
                "impact": ["link-flap", "traffic"],
                "current": [],
                "desired": [3],
            },
            {
                "kind": "unknown",
                "code": "roce.cnp",
                "severity": "warning",
                "feature": "roce",
                "device": "0000:18:00.0",
                "rail": "compute/0",
                "name": "cnp_dscp",
                "impact": ["link-flap", "traffic"],
                "reason": "no ecn/",
                "current": {"unknown": "no ecn/"},
                "desired": 48,
            },
        ],
    }
    failure = {
        "code": "host.unreachable",
        "message": "host key has changed",
        "hint": "if the node was installed anew, replace its line in known_hosts",
    }
    assert data["hosts"]["gpu02"] == {"state": "unknown", "failure": failure, "features": {}, "rows": []}
    assert data["hosts"]["gpu03"] == {"state": "in-sync", "features": {"node": "none", "roce": "none"}, "rows": []}
    (finding,) = data["fabric"]
    assert (finding["code"], finding["severity"], finding["hosts"]) == (
        "fabric.lossless-disagree",
        "critical",
        ["gpu01"],
    )


def test_saved_and_judged_later_it_reads_the_same(gpufab_on, nodes, site):
    nodes.answers |= {"gpu01": in_sync("gpu01", ports={0: {"pfc": ()}}), "gpu02": unreachable()}
    then = gpufab_on("audit", "--save", "then")
    nodes.asked.clear()
    assert gpufab_on("audit", "--from", "then") == then
    assert nodes.asked == []
    assert sorted(path.stem for path in (site / "then").iterdir()) == list(HOSTS)
    assert stat.S_IMODE((site / "then" / "gpu01.json").stat().st_mode) == 0o600


def test_from_nowhere(gpufab_on):
    error = "error: then: no saved snapshots\nhint: gpufab audit --save DIR writes them\n"
    assert gpufab_on("audit", "--from", "then") == (Exit.USAGE, "", error)


def test_save_and_from_exclude_each_other(gpufab_on):
    error = "error: --save and --from exclude each other\nhint: saved snapshots are saved already\n"
    assert gpufab_on("audit", "--from", "a", "--save", "b") == (Exit.USAGE, "", error)


def test_a_fabric_that_is_wrong_asks_no_host(gpufab_on, nodes, site):
    (site / "fabric.yml").write_text("name: x\n")
    code, out, err = gpufab_on("audit")
    assert (code, out, nodes.asked) == (Exit.USAGE, "", [])
    assert err.startswith("error: fabric.yml")


@pytest.mark.parametrize("arguments", [("--timeout", "0"), ("--forks", "0"), ("--format", "xml")])
def test_options_out_of_range(gpufab_on, arguments):
    code, out, err = gpufab_on("audit", *arguments)
    assert (code, out) == (Exit.USAGE, "")
    assert err.startswith("error: Invalid value for '" + arguments[0])
