"""The audit as JUnit XML."""

from xml.etree import ElementTree as ET

from gpufab_cli.audit.audit import audit
from gpufab_cli.audit.collect import Collected, Failed, Failure
from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.report.audit.junit import xml
from tests.snapshots import HOSTS, WANTS, in_sync


def cases(**answers):
    """Each test: failed, in error or passed, and the first line of what is said."""
    report = audit((Collected(host, answers.get(host, in_sync(host))) for host in HOSTS), WANTS)
    (suite,) = ET.fromstring(xml(report))  # noqa: S314 (our own)
    found = {}
    for case in suite:
        told = next(iter(case), None)
        kind = told.tag if told is not None else "pass"
        found[f"{case.get('classname')} {case.get('name')}"] = (
            kind,
            told.get("message", "") if told is not None else "",
        )
    kinds = [kind for kind, _ in found.values()]
    assert (int(suite.get("tests")), int(suite.get("failures")), int(suite.get("errors"))) == (
        *(len(found), kinds.count("failure"), kinds.count("error")),
    )
    return found


def test_all_in_sync():
    found = cases()
    assert set(found.values()) == {("pass", "")}
    assert set(found) == {f"{host} {feature}" for host in HOSTS for feature in WANTS[host]}


def test_drift_is_a_failure_and_so_is_what_all_hosts_show():
    found = cases(gpu02=in_sync("gpu02", ports={0: {"pfc": ()}}))
    assert found["gpu02 roce"] == ("failure", "roce.pfc compute/0 PFC: none → 3")
    assert found["fabric fabric.lossless-disagree"] == ("failure", "gpu02")
    assert found["gpu01 roce"] == ("pass", "")


def test_unknown_is_an_error():
    found = cases(gpu02=in_sync("gpu02", ports={0: {"pfc": Unknown("dcb \x1b[31mhangs")}}))
    kind, words = found["gpu02 roce"]
    assert kind == "error"
    assert "dcb ?[31mhangs" in words


def test_no_answer_is_an_error():
    found = cases(gpu03=Failure(Failed.TIMEOUT, "no answer within 30 s"))
    assert found["gpu03 reachable"] == ("error", "no answer within 30 s")
    assert "gpu03 roce" not in found
