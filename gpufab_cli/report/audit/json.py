"""The report as data: the interface for machines, its format counted by ``format``.

``hosts`` maps each host to its ``state`` (in-sync, drift or unknown), to ``failure`` when there is no snapshot
of it, to ``features`` (what is left to do: none, findings or some) and to ``rows``. A row's ``kind`` is
drift, blocked, pending, finding or unknown; ``current`` and ``desired`` are as the node core writes them:
``{"unknown": reason}`` and ``{"absent": true}`` are no values. ``accepted`` says until when and why the fabric
accepts a row, which then leaves its host in sync. Fields without content are left out. In ``fabric`` stands what the
hosts together show; ``"unknown": true`` there says that the named hosts could not be compared.
"""

import json
from collections.abc import Iterator
from typing import Any

from gpufab_cli.audit.audit import AuditReport
from gpufab_cli.audit.collect import short
from gpufab_cli.audit.finding import FabricFinding
from gpufab_cli.audit.judge import HostReport, Kind, Row
from gpufab_cli.module_utils.schema import encode
from gpufab_cli.module_utils.texts import blame

FORMAT = 1


def data(report: AuditReport) -> dict[str, Any]:
    """The whole report as JSON data."""
    return {
        "format": FORMAT,
        "exit_code": int(report.exit_code),
        "hosts": {name: _host(host) for name, host in report.hosts.items()},
        "fabric": [_fabric(finding) for finding in report.fabric],
    }


def text(report: AuditReport) -> Iterator[str]:
    """The whole report as JSON text, host by host: that of a large fabric would not fit into memory twice."""
    yield f'{{\n  "format": {FORMAT},\n  "exit_code": {int(report.exit_code)},\n  "hosts": {{'
    for number, (name, host) in enumerate(report.hosts.items()):
        yield f"{',' if number else ''}\n    {json.dumps(name)}: {_indented(_host(host), 4)}"
    fabric = _indented([_fabric(finding) for finding in report.fabric], 2)
    yield f'\n  }},\n  "fabric": {fabric}\n}}\n'


def _indented(data: Any, columns: int) -> str:
    return json.dumps(data, indent=2, allow_nan=False).replace("\n", "\n" + " " * columns)


def _host(report: HostReport) -> dict[str, Any]:
    found: dict[str, Any] = {"state": report.state.value}
    if report.failure is not None:
        failure = report.failure
        found["failure"] = _filled({"code": failure.code, "message": failure.message, "hint": failure.hint})
    found["features"] = {name: work.value for name, work in report.work.items()}
    return {**found, "rows": [row_data(row) for row in report.rows]}


def row_data(row: Row) -> dict[str, Any]:
    """One row as JSON data."""
    facts = {
        "kind": row.kind.value,
        "code": row.code,
        "severity": row.severity.value,
        "feature": row.feature,
        "device": row.place.device,
        "rail": row.place.rail,
        "name": row.place.name,
        "impact": encode(row.impact),
        "reason": row.reason,
        "accepted": row.accepted,
    }
    values = {} if row.kind is Kind.FINDING else {"current": _value(row.current), "desired": _value(row.desired)}
    return _filled(facts) | values


def _value(value: Any) -> Any:
    """A value as JSON data; one that JSON cannot hold costs no other its place."""
    try:
        data = encode(value)
        json.dumps(data, allow_nan=False)
    except Exception as error:
        return {"unknown": f"cannot be shown: {short(blame(error))}"}
    return data


def _fabric(finding: FabricFinding) -> dict[str, Any]:
    return {
        "code": finding.code,
        "severity": finding.severity.value,
        "hosts": list(finding.hosts),
        "evidence": finding.evidence,
        **({"unknown": True} if finding.unknown else {}),
    }


def _filled(data: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in data.items() if item not in ("", [])}
