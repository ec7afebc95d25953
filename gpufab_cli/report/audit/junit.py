"""The report as JUnit XML, for CI: a test a host and feature, one a check across all hosts.

What differs is a failure, what is not known an error: a value nobody could read is no pass. Accepted deviations and
findings of severity info pass.
"""

from collections.abc import Iterator
from xml.etree import ElementTree as ET

from gpufab_cli.audit.audit import AuditReport
from gpufab_cli.audit.finding import FabricFinding
from gpufab_cli.audit.judge import HostReport, Row, State
from gpufab_cli.catalogue import Severity
from gpufab_cli.fabric.hostlist import fold
from gpufab_cli.report.audit.lines import text
from gpufab_cli.report.values import label

FABRIC = "fabric"


def xml(report: AuditReport) -> bytes:
    """The whole report."""
    cases = [case for host in report.hosts.values() for case in _host(host)]
    cases += [_finding(finding) for finding in report.fabric]
    counts = {kind: str(sum(case.find(kind) is not None for case in cases)) for kind in ("failure", "error")}
    suite = ET.Element("testsuite", name="gpufab audit", tests=str(len(cases)), failures=counts["failure"])
    suite.set("errors", counts["error"])
    suite.extend(cases)
    suites = ET.Element("testsuites")
    suites.append(suite)
    ET.indent(suites)
    written: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return written + b"\n"


def _host(report: HostReport) -> Iterator[ET.Element]:
    if report.failure is not None:
        yield _case(report.host, "reachable", "error", report.failure.code, [report.failure.message])
        return
    by_feature: dict[str, list[Row]] = {feature: [] for feature in report.work}
    for row in report.rows:
        by_feature.setdefault(row.feature, []).append(row)
    for feature, rows in by_feature.items():
        yield _feature(report.host, feature or "host", rows)


def _feature(host: str, feature: str, rows: list[Row]) -> ET.Element:
    """The worst decides: known to differ is worse than unknown."""
    for state, kind in ((State.DRIFT, "failure"), (State.UNKNOWN, "error")):
        bad = [row for row in rows if row.state is state]
        if bad:
            return _case(host, feature, kind, bad[0].code, [_line(row) for row in bad])
    return ET.Element("testcase", classname=host, name=feature)


def _finding(finding: FabricFinding) -> ET.Element:
    lines = [fold(finding.hosts), *finding.evidence.split("; ")]
    kind = "error" if finding.unknown else "" if finding.severity is Severity.INFO else "failure"
    return _case(FABRIC, finding.code, kind, finding.code, lines)


def _case(classname: str, name: str, kind: str, code: str, lines: list[str]) -> ET.Element:
    case = ET.Element("testcase", classname=classname, name=name)
    told = ET.SubElement(case, kind or "system-out")
    if kind:
        told.set("type", code)
        told.set("message", _clean(lines[0]))
    told.text = _clean("\n".join(lines))
    return case


def _line(row: Row) -> str:
    where = " ".join(word for word in (row.place.rail or row.place.device, label(row.place.name)) if word)
    return f"{row.code}{f' {where}' if where else ''}: {text(row)}"


def _clean(words: str) -> str:
    """XML 1.0 has no control characters, not even escaped."""
    return "".join(char if char.isprintable() or char == "\n" else "?" for char in words)
