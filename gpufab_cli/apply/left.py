"""Hosts that an apply has left drained, in the report of an audit. Pure, but for what it is given."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from gpufab_cli.apply.states import State
from gpufab_cli.audit.audit import AuditReport
from gpufab_cli.audit.judge import LEFT_DRAINED, HostReport, Kind, Row


def noted(report: AuditReport, states: Mapping[str, State]) -> AuditReport:
    """The report with a row for each host whose drain is on record beside fabric.yml, unless its node has said so."""
    return replace(report, hosts={host: _noted(one, states.get(host)) for host, one in report.hosts.items()})


def unsaid(report: AuditReport, states: Mapping[str, State]) -> dict[str, str]:
    """Of the hosts on record those that no row speaks of: there was no answer, or they are not in the audit."""
    found = {host: state.words for host, state in states.items()}
    return {host: words for host, words in found.items() if not _says(report.hosts.get(host))}


def cleared(report: AuditReport, hosts: Iterable[str]) -> AuditReport:
    """The report once these hosts are given back."""
    gone = set(hosts)
    return replace(report, hosts={host: _without(one) if host in gone else one for host, one in report.hosts.items()})


def _noted(report: HostReport, state: State | None) -> HostReport:
    if state is None or report.failure is not None or _says(report):
        return report
    return replace(report, rows=(*report.rows, Row(Kind.FINDING, LEFT_DRAINED, "", reason=state.words)))


def _says(report: HostReport | None) -> bool:
    return report is not None and any(row.code == LEFT_DRAINED for row in report.rows)


def _without(report: HostReport) -> HostReport:
    return replace(report, rows=tuple(row for row in report.rows if row.code != LEFT_DRAINED))
