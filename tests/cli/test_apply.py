"""``gpufab apply``: what became of every step, as it is printed; Ansible is played by the nodes in memory."""

import json

import pytest

from gpufab_cli.apply.ansible import Said
from gpufab_cli.compile import fabric
from gpufab_cli.errors import Exit
from gpufab_cli.fabric import resolve
from gpufab_cli.module_utils.change import ABSENT, Change, Impact, Step, Unknown
from gpufab_cli.module_utils.claim import Answer
from gpufab_cli.module_utils.converge import Status, StepResult
from tests.cli.expected import expected
from tests.cli.nodes import unreachable
from tests.snapshots import in_sync

PCI = {0: "0000:18:00.0", 1: "0000:28:00.0"}
FLAP = frozenset({Impact.LINK_FLAP, Impact.TRAFFIC})


ALL_AT_ONCE = "rollout: {canary: 0, batch: 100%, soak_s: 0, verify: false}\n"


@pytest.fixture
def site(site, nodes):
    """The site with its inventory rendered; all hosts are one batch."""
    with (site / "fabric.yml").open("a") as file:
        file.write(ALL_AT_ONCE)
    assert nodes.run("render") == 0
    return site


def port(rail, status, reason="", impact=FLAP, current=()):
    change = Change((PCI[rail], "pfc"), current, (3,), "roce.pfc")
    return StepResult("roce", Step(f"roce compute/{rail}", (change,), impact, PCI[rail]), status, reason)


def kept(status=Status.MADE):
    change = Change(("/etc/gpufab/desired.d/roce.json",), ABSENT, "sha256:aa", "node.desired")
    return StepResult("roce", Step("persist roce", (change,)), status)


def pfc_off(nodes, *hosts):
    for host in hosts:
        nodes.answers[host] = in_sync(host, ports={0: {"pfc": ()}, 1: {"pfc": ()}})


def saying(*said):
    return lambda nodes: said


def refused(rail):
    return port(rail, Status.REFUSED, "needs --allow link-flap,traffic")


def test_in_sync_starts_no_ansible(gpufab_on, nodes, capfd):
    capfd.readouterr()
    out, err = "3 hosts: 3 in sync\n", "audit: 3 hosts: 3 in sync\n"
    assert gpufab_on("apply") == (Exit.IN_SYNC, out, err)
    assert nodes.plays == []


def test_refused_for_lack_of_consent(gpufab_on, nodes, capfd):
    pfc_off(nodes, "gpu01", "gpu02")
    steps = (kept(), refused(0), refused(1))
    nodes.rounds = [saying(Said("gpu01", "roce", steps), Said("gpu02", "roce", steps))]
    capfd.readouterr()
    code, out, err = gpufab_on("apply")
    assert code == Exit.DRIFT
    assert out == expected("apply-refused", out)
    assert err == expected("apply-refused-progress", err)


def test_a_refused_management_port_is_not_said_to_be_made_at_boot(gpufab_on, nodes):
    pfc_off(nodes, "gpu01")
    management = port(0, Status.REFUSED, "needs --allow management-port", FLAP | {Impact.MANAGEMENT_PORT})
    nodes.rounds = [saying(Said("gpu01", "roce", (management,)))]
    out = gpufab_on("apply", "--allow", "traffic,link-flap")[1]
    assert "needs --allow management-port" in out
    assert "At the next boot" not in out


def test_consent_is_passed_on_and_what_is_made_is_shown(gpufab_on, nodes):
    pfc_off(nodes, "gpu01", "gpu02")

    def make(found):
        found.answers |= {"gpu01": in_sync("gpu01"), "gpu02": in_sync("gpu02")}
        made = (port(0, Status.MADE), port(1, Status.MADE))
        return Said("gpu01", "roce", made), Said("gpu02", "roce", made)

    nodes.rounds = [make]
    code, out, _ = gpufab_on("apply", "--diff", "--allow", "traffic", "--allow", "link-flap,reboot")
    assert code == Exit.IN_SYNC
    assert out == expected("apply-made", out)
    granted = nodes.plays[0].extra_vars["gpufab_granted"]
    assert granted == {host: ["link-flap", "reboot", "traffic"] for host in ("gpu01", "gpu02")}


def test_every_other_ending(gpufab_on, nodes):
    pfc_off(nodes, "gpu01", "gpu02", "gpu03")
    nodes.answers["gpu03"] = unreachable()
    busy = port(0, Status.BUSY, "python (process 7) computes on a GPU")
    failed = port(1, Status.FAILED, "did not stick: 0000:28:00.0/pfc is (), not (3,); undone")
    blocked = port(0, Status.BLOCKED, "lldpad (process 77) owns the port's DCB settings")
    unknown = port(1, Status.UNKNOWN, "dcb is not installed", current=Unknown("dcb is not installed"))
    nodes.rounds = [
        saying(
            Said("gpu01", "roce", (busy, failed)),
            Said("gpu02", "roce", (blocked, unknown)),
        )
    ]
    code, out, _ = gpufab_on("apply", "--allow", "traffic,link-flap")
    assert code == Exit.DRIFT
    assert out == expected("apply-endings", out)


def test_a_dry_run(gpufab_on, nodes):
    pfc_off(nodes, "gpu01")
    would = (kept(Status.WOULD_MAKE), port(0, Status.WOULD_MAKE), refused(1))
    nodes.rounds = [saying(Said("gpu01", "roce", would))]
    code, out, _ = gpufab_on("apply", "--check", "--diff")
    assert code == Exit.DRIFT
    assert out == expected("apply-check", out)
    assert nodes.plays[0].check


def test_only_unreachable(gpufab_on, nodes):
    nodes.answers["gpu02"] = unreachable()
    nodes.rounds = [saying(Said("gpu02", "", problem="no route to host", unreachable=True))]
    assert gpufab_on("apply")[0] == Exit.UNKNOWN


def test_fabric_yml_is_loaded_resolved_and_compiled_once(gpufab_on, nodes, monkeypatch):
    pfc_off(nodes, "gpu01")
    nodes.rounds = [saying(Said("gpu01", "roce", (refused(0),)))]
    calls = []

    def counted(module, name):
        real = getattr(module, name)
        monkeypatch.setattr(module, name, lambda *given: calls.append(name) or real(*given))

    for name in ("load", "load_lock", "resolve"):
        counted(resolve, name)
    counted(fabric, "compile_wants")
    assert gpufab_on("apply")[0] == Exit.DRIFT
    assert sorted(calls) == ["compile_wants", "load", "load_lock", "resolve"]


def test_json(gpufab_on, nodes):
    pfc_off(nodes, "gpu01")
    nodes.rounds = [saying(Said("gpu01", "roce", (refused(0),)))]
    code, out, _ = gpufab_on("apply", "--format", "json")
    data = json.loads(out)
    assert code == data["exit_code"] == Exit.DRIFT
    assert (data["format"], data["check"], data["rounds"]) == (1, False, 1)
    assert set(data["run"]) == {"id", "user", "spec"}
    (host,) = data["hosts"].values()
    (step,) = host["steps"]
    (change,) = step["changes"]
    assert (host["problem"], host["unreachable"]) == ("", False)
    assert (step["feature"], step["name"], step["device"]) == ("roce", "roce compute/0", "0000:18:00.0")
    assert (step["status"], step["reason"]) == ("refused", "needs --allow link-flap,traffic")
    assert step["impact"] == ["link-flap", "traffic"]
    assert (change["path"], change["current"], change["desired"]) == (["0000:18:00.0", "pfc"], [], [3])
    assert data["audit"]["hosts"]["gpu01"]["state"] == "drift"


def test_a_stale_inventory_is_refused_before_any_host_is_asked(gpufab_on, nodes, site):
    text = (site / "fabric.yml").read_text()
    (site / "fabric.yml").write_text(text.replace("mtu: 9000", "mtu: 4200"))
    code, out, err = gpufab_on("apply")
    assert (code, out, nodes.asked) == (Exit.USAGE, "", [])
    assert "error: the rendered inventory is stale: " in err
    assert err.endswith("hint: run gpufab render, review, apply\n")


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("--allow", "link-flop"), "error: --allow link-flop: no such impact\nhint: did you mean link-flap?\n"),
        (("--allow", "traffic,"), "error: --allow : no such impact\n"),
        (("--only", "rock"), "error: --only rock: no such feature\nhint: did you mean roce?\n"),
        (("--busy-ok", "gpu9"), "error: no active host matches 'gpu9'\n"),
        (("--limit", "gpu9"), "error: no active host matches 'gpu9'\n"),
    ],
)
def test_slips(gpufab_on, nodes, capfd, arguments, error):
    capfd.readouterr()
    code, out, err = gpufab_on("apply", *arguments)
    assert (code, out, nodes.asked) == (Exit.USAGE, "", [])
    assert err.startswith(error)


def test_options_reach_the_play(gpufab_on, nodes):
    nodes.rounds = [saying()]
    gpufab_on("apply", "--full", "--busy-ok", "gpu0[1-2]", "--limit", "gpu0*", "--forks", "3", "--timeout", "9")
    (play,) = nodes.plays
    assert play.extra_vars["gpufab_busy_hosts"] == ["gpu01", "gpu02"]
    assert (play.hosts, play.forks, play.connect_seconds) == (("gpu01", "gpu02", "gpu03"), 3, 9.0)


def test_what_was_not_begun_is_listed_with_its_reason(gpufab_on, nodes):
    pfc_off(nodes, "gpu01")
    nodes.rounds = [saying(Said("gpu01", "ofed", problem="not offered"), Said("gpu01", "ofed", ended=True))]
    code, out, _ = gpufab_on("apply", "--only", "roce", "--only", "ofed")
    assert code == Exit.DRIFT
    assert out.splitlines()[3].split(maxsplit=2) == ["not-begun", "roce", "needs ofed, which failed"]


def test_what_was_wrong_before_is_not_called_worse(gpufab_on, nodes):
    pfc_off(nodes, "gpu01")
    nodes.rounds = [saying(Said("gpu01", "roce", problem="not offered"))]
    err = gpufab_on("apply")[2]
    assert ("worse than before" in err, "not fit: gpu01" in err) == (False, True)


def test_a_host_that_another_apply_has_is_named_and_not_run(gpufab_on, nodes, site):
    pfc_off(nodes, "gpu01")
    words = "claimed by kim on ctl2 (run r2) since 2026-01-01 10:00 UTC, for 90 s more"
    nodes.answer_claim = Answer(words)
    code, out, _ = gpufab_on("apply", "--allow", "traffic,link-flap")
    assert (code, nodes.plays, words in out) == (Exit.DRIFT, [], True)
