"""One host is not locked yet: every command works for the others, and the way out is named."""

import json

import pytest
import yaml

from gpufab_cli import cli
from gpufab_cli.audit import collect
from gpufab_cli.audit.collect import Collected, Failed, Failure
from gpufab_cli.errors import Exit
from gpufab_cli.spec.lock import FILE_NAME, dump, load_lock
from tests import fabrics
from tests.cli.test_lock import node
from tests.snapshots import in_sync

WAY_OUT = "gpufab lock --limit gpu03"


@pytest.fixture
def bring_up(site):
    (site / FILE_NAME).write_text(dump(fabrics.lock(hosts=(1, 2))))
    return site


def test_the_audit_asks_the_others_and_names_it(bring_up, gpufab_on, nodes):
    code, out, _ = gpufab_on("audit")
    assert code == Exit.UNKNOWN
    assert sorted(nodes.asked) == ["gpu01", "gpu02"]
    assert "host.unlocked" in out
    assert WAY_OUT in " ".join(out.split())
    assert "3 hosts: 2 in sync, 1 unlocked" in out


def test_drift_of_the_others_is_still_drift(bring_up, gpufab_on, nodes):
    nodes.answers["gpu01"] = in_sync("gpu01", ports={0: {"pfc": ()}})
    code, out, _ = gpufab_on("audit", "--format", "json")
    assert code == Exit.DRIFT
    assert json.loads(out)["hosts"]["gpu03"]["failure"]["code"] == "host.unlocked"


@pytest.mark.parametrize("limit", ["gpu01", "!gpu03", "gpu03"])
def test_a_limit_counts(bring_up, gpufab_on, nodes, limit):
    assert gpufab_on("audit", "--limit", limit)[0] == (Exit.UNKNOWN if limit == "gpu03" else Exit.IN_SYNC)
    assert ("gpu03" in gpufab_on("audit", "--limit", limit)[1]) is (limit == "gpu03")


def test_what_was_saved_is_judged_likewise(bring_up, gpufab_on, tmp_path):
    assert gpufab_on("audit", "--save", "then")[0] == Exit.UNKNOWN
    code, out, _ = gpufab_on("audit", "--from", "then")
    assert (code, WAY_OUT in " ".join(out.split())) == (Exit.UNKNOWN, True)


def test_render_leaves_it_out_of_the_managed_groups_and_names_it(bring_up, gpufab_on):
    code, _, err = gpufab_on("render")
    assert code == Exit.UNKNOWN
    assert f"gpu03: in no managed group: {FILE_NAME}: gpu03 is not in it (when it answers: {WAY_OUT}" in err
    groups = yaml.safe_load((bring_up / "inventory/hosts.yml").read_text())
    assert set(groups["gpufab"]["hosts"]) == {"gpu01", "gpu02", "gpu03"}
    assert set(groups["roce"]["hosts"]) == set(groups["node"]["hosts"]) == {"gpu01", "gpu02"}
    assert gpufab_on("render", "--check")[0] == Exit.UNKNOWN


def test_apply_works_for_the_others(bring_up, gpufab_on, nodes):
    gpufab_on("render")
    nodes.answers["gpu01"] = in_sync("gpu01", ports={0: {"pfc": ()}})
    nodes.rounds = [lambda _: ()]
    code, out, _ = gpufab_on("apply")
    assert code == Exit.DRIFT
    assert [play.hosts for play in nodes.plays] == [("gpu01",)]
    assert WAY_OUT in " ".join(out.split())
    nodes.answers["gpu01"] = in_sync("gpu01")
    assert gpufab_on("apply")[0] == Exit.UNKNOWN
    assert gpufab_on("apply", "--limit", "gpu01")[0] == Exit.IN_SYNC


def test_verify_names_it_and_proves_nothing_of_it(bring_up, gpufab_on):
    code, out, _ = gpufab_on("verify", "--limit", "gpu03", "--junit", "verify.xml", "--format", "json")
    assert code == Exit.UNKNOWN
    (result,) = json.loads(out)["results"]
    assert (result["host"], result["check"], result["status"]) == ("gpu03", "locked", "unknown")
    assert WAY_OUT in result["detail"]
    assert "skipped" in (bring_up / "verify.xml").read_text()


def test_the_way_out_locks_it_while_another_is_dead(bring_up, monkeypatch, capfd):
    (bring_up / FILE_NAME).write_text(dump(fabrics.lock(hosts=(1,))))
    answers = {"gpu02": Collected("gpu02", Failure(Failed.TIMEOUT, "hangs")), "gpu03": node(3)}
    asked = []

    def answer(jobs, execute, *, seconds, forks):
        asked.extend(jobs)
        return (answers[host] for host in jobs)

    monkeypatch.setattr(collect, "collect", answer)
    assert cli.run(["lock", "--limit", "gpu03"]) == Exit.IN_SYNC
    assert asked == ["gpu03"]
    assert sorted(load_lock(bring_up / "fabric.yml").hosts) == ["gpu01", "gpu03"]
    assert cli.run(["lock"]) == Exit.UNKNOWN
    assert "gpu02: timeout: hangs" in capfd.readouterr().err
