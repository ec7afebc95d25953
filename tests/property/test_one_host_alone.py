"""Whatever one host of three answers, it is named, and the others' rows are the same in every report."""

import io
import json
from xml.etree import ElementTree as ET

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gpufab_cli.apply import apply
from gpufab_cli.apply.ansible import heard
from gpufab_cli.audit import fabric, saved
from gpufab_cli.audit.audit import audit
from gpufab_cli.audit.collect import Failure, collect
from gpufab_cli.errors import Exit
from gpufab_cli.module_utils import snapshot
from gpufab_cli.module_utils.ansible_module import module_result
from gpufab_cli.module_utils.converge import Outcome
from gpufab_cli.module_utils.journal import Run
from gpufab_cli.module_utils.program import MARKER
from gpufab_cli.reach.result import Result
from gpufab_cli.reach.target import Target
from gpufab_cli.report import apply as apply_report
from gpufab_cli.report.audit import json as as_json
from gpufab_cli.report.audit import junit
from gpufab_cli.report.audit.table import show
from gpufab_cli.report.console import results
from tests.property.test_decoding import CRUEL, VALUES, nested
from tests.snapshots import HOSTS, WANTS, in_sync
from tests.unit.apply.test_ansible import RESULT, event

OTHERS = ("gpu02", "gpu03")
ANSWERS = {host: snapshot.dumps(in_sync(host, ports={0: {"pfc": ()}})) for host in HOSTS}
WHOLE = json.loads(ANSWERS["gpu01"])


def places(data, path=()):
    """Every place in a snapshot."""
    yield path
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, inner in items:
        yield from places(inner, (*path, key))


PLACES = [place for place in places(WHOLE) if place]


def spoilt(place, text):
    """The answer of gpu01 with other JSON in one place."""
    whole = json.loads(ANSWERS["gpu01"])
    inner = whole
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = "@@"
    return json.dumps(whole).replace('"@@"', text)


SEVEN_ROWS = ("seen", "roce", "ports", next(iter(WHOLE["seen"]["roce"]["ports"])), "tc_bw")
CRUEL_ANSWERS = [
    *CRUEL,
    *(spoilt(("boot_id",), text) for text in CRUEL),
    *(spoilt(("seen", "roce"), nested(depth)) for depth in (500, 990)),
    spoilt(SEVEN_ROWS, "[0,0,0,50,0,0,50]"),
    spoilt(("records", "roce"), '{"absent": 3}'),
    "\x1b[2J\u202e",
]


def reports(answer):
    """The audit of three hosts of which the first answers so, or of the other two."""
    texts = ANSWERS | ({"gpu01": answer} if answer is not None else {})
    hosts = [host for host in HOSTS if answer is not None or host in OTHERS]
    jobs = {h: (Target(h, h, None, None, None, "none", "/usr/bin/python3", "active"), WANTS[h]) for h in hosts}

    def execute(target, *_):
        return Result(0, f"{MARKER}\n{texts[target.host]}\n".encode("utf-8", "surrogatepass"), b"")

    return audit(collect(jobs, execute, seconds=5, forks=1), {host: WANTS[host] for host in hosts})


def shown(report, capture=True):
    """The report in every format: JSON by host, JUnit cases by host, and the table."""
    by_host = json.loads("".join(as_json.text(report)))["hosts"]
    cases = {}
    for case in ET.fromstring(junit.xml(report)).iter("testcase"):  # noqa: S314 (our own)
        cases.setdefault(case.get("classname"), []).append(ET.tostring(case).strip())
    console = results(width=400)
    console.file = io.StringIO()
    show(report, console)
    table = console.file.getvalue()
    assert all(char.isprintable() or char == "\n" for char in table)
    return by_host, cases, table


ALONE = reports(None)
ALONE_SHOWN = shown(ALONE)


def cruel(test):
    for text in CRUEL_ANSWERS:
        test = example(text)(test)
    return settings(deadline=None)(test)


@cruel
@given(
    st.text(max_size=40)
    | VALUES.map(json.dumps)
    | st.builds(spoilt, st.sampled_from(PLACES), VALUES.map(json.dumps) | st.sampled_from(CRUEL[2:]))
)
def test_the_other_hosts_rows_are_what_they_are_without_it(answer):
    report = reports(answer)
    by_host, cases, table = shown(report)
    for host in OTHERS:
        assert report.hosts[host] == ALONE.hosts[host]
        assert by_host[host] == ALONE_SHOWN[0][host]
        assert cases[host] == ALONE_SHOWN[1][host]
    assert report.exit_code is Exit.DRIFT  # what is wrong of the others is known
    assert set(by_host) == set(HOSTS)
    if report.hosts["gpu01"].failure is not None:
        assert by_host["gpu01"]["failure"]["message"]
        assert "gpu01" in cases
        assert "gpu01" in table


@pytest.mark.parametrize("answer", CRUEL_ANSWERS, ids=range(len(CRUEL_ANSWERS)))
def test_what_is_no_snapshot_is_a_failure_by_name(answer):
    report = reports(answer)
    assert report.hosts["gpu01"].failure.code == "host.garbage"
    assert report.only(["gpu01"]).exit_code is Exit.UNKNOWN


@pytest.mark.parametrize(
    "text", [*CRUEL, nested(500), "{}", '{"format": 1, "snapshot": [[[]]]}'], ids=range(len(CRUEL) + 3)
)
def test_a_saved_file_of_garbage_is_its_own_hosts(text, tmp_path):
    tuple(saved.save([], tmp_path))
    for host in OTHERS:
        tuple(saved.save(collected_of(host), tmp_path))
    (tmp_path / "gpu01.json").write_text(text)
    report = audit(saved.load(tmp_path, HOSTS), WANTS)
    assert isinstance(report.hosts["gpu01"].failure, Failure)
    assert {host: report.hosts[host] for host in OTHERS} == ALONE.hosts
    shown(report)


def collected_of(host):
    job = (Target(host, host, None, None, None, "none", "/usr/bin/python3", "active"), WANTS[host])
    return collect({host: job}, lambda *_: Result(0, f"{MARKER}\n{ANSWERS[host]}\n".encode(), b""), seconds=5, forks=1)


STEP = json.loads(json.dumps(module_result(Outcome((RESULT,)))))["steps"][0]
STEP_PLACES = [place for place in places(STEP) if place]


def spoilt_step(place, value):
    """A module's result with another value in one place of its one step."""
    step = json.loads(json.dumps(STEP))
    inner = step
    for key in place[:-1]:
        inner = inner[key]
    inner[place[-1]] = value
    return {"steps": [step]}


@settings(deadline=None)
@example("runner_on_ok", spoilt_step(("name",), "9" * 5000 + "\x1b[2J"))
@example("runner_on_ok", spoilt_step(("changes", 0, "current"), [1] * 7))
@given(
    st.sampled_from(["runner_on_ok", "runner_on_failed", "runner_on_unreachable"]),
    VALUES
    | st.dictionaries(st.sampled_from(["msg", "steps", "results", "stdout", "rc", "cmd", "todo"]), VALUES)
    | st.builds(spoilt_step, st.sampled_from(STEP_PLACES), VALUES),
)
def test_whatever_a_module_answers_the_other_hosts_of_an_apply_read_the_same(kind, result):
    outcomes = {host: apply.Outcome() for host in HOSTS}
    for host, answer in (("gpu01", result), ("gpu02", {"steps": [STEP]}), ("gpu03", {"steps": []})):
        said = heard(event(kind if host == "gpu01" else "runner_on_ok", answer, host=host))
        if said is not None:
            outcomes[host].take(said)
    report = apply.ApplyReport(Run("r", "u", "s"), False, 1, outcomes, ALONE)
    data = json.loads(json.dumps(apply_report.data(report), allow_nan=False))
    assert data["hosts"]["gpu02"]["steps"] == [{**STEP, "status": "refused"}]
    none = {"steps": [], "problem": "", "unreachable": False, "held": "", "not_begun": {}}
    assert data["hosts"]["gpu03"] == none
    console = results(width=400)
    console.file = io.StringIO()
    apply_report.show(report, console, diff=True)
    table = console.file.getvalue()
    assert all(char.isprintable() or char == "\n" for char in table)
    assert "needs --allow link-flap" in table


def test_a_fact_that_a_comparison_stumbles_over_is_left_out_and_named(monkeypatch):
    check = fabric.CHECKS[0]

    def verdict(facts):
        if "gpu01" in facts:
            raise RecursionError("odd")
        return check.verdict(facts)

    stumbling = fabric.Check(check.fact, verdict)
    monkeypatch.setattr(fabric, "CHECKS", (stumbling, *fabric.CHECKS[1:]))
    report = reports(ANSWERS["gpu01"])
    (finding,) = report.fabric
    assert (finding.code, finding.hosts) == ("fabric.stumbled", ("gpu01",))
    assert "RecursionError" in finding.evidence
    _, cases, table = shown(report)
    assert ET.fromstring(cases["fabric"][0]).find("error") is not None  # noqa: S314
    assert "fabric.stumbled gpu01" in table
    sound = audit([], {})
    assert type(sound)({}, report.fabric).exit_code is Exit.UNKNOWN
