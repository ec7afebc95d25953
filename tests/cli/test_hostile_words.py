"""What a node chooses is printed as it stands, on every way out, and does nothing to a terminal."""

import json

import pytest

from gpufab_cli.apply.ansible import heard
from gpufab_cli.apply.apply import ApplyReport, Outcome
from gpufab_cli.commands.apply import _hear
from gpufab_cli.module_utils.journal import Run
from gpufab_cli.reach.result import UnreachableError
from gpufab_cli.report import apply as apply_report
from gpufab_cli.report import verify as verify_report
from gpufab_cli.report.audit import junit
from gpufab_cli.report.console import results
from gpufab_cli.verify.results import Result
from tests.property.test_one_host_alone import ALONE, PLACES, WHOLE, reports, shown, spoilt, spoilt_step
from tests.unit.apply.test_ansible import event

MARKUP = "[red]x[/red]"
EVIL = f"{MARKUP}\x1b[2J\x1b]0;owned\x07\x9b1m\x07\b\u202eabc\u2066\u200b\u2028\ud800\nerror: forged line"
"""Markup of rich, ESC, CSI, OSC, its C1 form, bidirectional overrides, an invisible one, a surrogate, a line end."""


def inert(text, lines="\n"):
    return all(char.isprintable() or char in lines for char in text)


def leaf(place):
    found = WHOLE
    for key in place:
        found = found[key]
    return isinstance(found, str)


TEXTS = [place for place in PLACES if leaf(place)]


@pytest.mark.parametrize("place", TEXTS, ids=lambda place: "/".join(map(str, place)))
def test_in_each_text_of_a_snapshot(place):
    report = reports(spoilt(place, json.dumps(EVIL)))
    _, _, table = shown(report)
    assert inert(table)
    assert inert(junit.xml(report).decode())
    assert "\nerror: forged" not in table


@pytest.mark.parametrize("where", ["unreachable", "stdout", "key"])
def test_in_an_answer_that_is_no_snapshot(gpufab_on, nodes, where):
    nodes.answers["gpu01"] = {
        "unreachable": UnreachableError(EVIL, EVIL),
        "stdout": EVIL.replace("\ud800", ""),
        "key": f"{MARKUP}\x1b[31m\n",
    }[where]
    _, out, err = gpufab_on("audit", "--junit", "audit.xml")
    assert inert(out)
    assert inert(err)
    assert MARKUP in out
    _, out, _ = gpufab_on("audit", "--format", "json")
    assert inert(out)


STEPS = [spoilt_step((name,), EVIL) for name in ("name", "reason", "blocked")]
STEPS += [spoilt_step(("changes", 0, name), EVIL) for name in ("current", "desired")]


@pytest.mark.parametrize("kind", ["runner_on_ok", "runner_on_failed", "runner_on_unreachable"])
@pytest.mark.parametrize("result", [{"msg": EVIL}, {"msg": EVIL, "steps": EVIL}, *STEPS], ids=range(7))
def test_in_what_a_module_says(kind, result, capsys):
    said = heard(event(kind, result))
    outcome = Outcome()
    outcome.take(said)
    report = ApplyReport(Run("r", "u", "s"), False, 1, {"gpu01": outcome}, ALONE, left_drained={"gpu01": EVIL})
    apply_report.show(report, results(width=400), diff=True)
    _hear(said)
    out, err = capsys.readouterr()
    assert inert(out)
    assert inert(err)
    assert err.count("\n") == 1  # a host's words are no line of their own
    assert MARKUP in out


def test_in_what_verify_reads(capsys):
    found = [Result("gpu01", EVIL, "pfc", "fail", EVIL), Result("gpu01", "", "reachable", "unknown", EVIL)]
    verify_report.show(found)
    out = capsys.readouterr().out
    assert inert(out)
    assert MARKUP in out
    assert "\nerror: forged" not in out
    assert inert(json.dumps(verify_report.data(found)))
