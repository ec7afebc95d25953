"""An audit: hosts are judged as their snapshots come in, and only the verdicts are kept."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from gpufab_cli.audit.collect import Collected, Failure, Wants
from gpufab_cli.audit.fabric import Facts
from gpufab_cli.audit.finding import FabricFinding
from gpufab_cli.audit.judge import HostReport, State, judge, stumbled
from gpufab_cli.audit.waive import NO_WAIVERS, Waivers
from gpufab_cli.catalogue import Severity
from gpufab_cli.errors import Exit
from gpufab_cli.module_utils.texts import blame


@dataclass(frozen=True)
class AuditReport:
    """What an audit found: hosts by name in their order in the fabric, and what only all of them show."""

    hosts: Mapping[str, HostReport]
    fabric: tuple[FabricFinding, ...] = ()
    facts: Facts = field(default_factory=Facts, compare=False, repr=False)
    """What the findings about the fabric come from, to be found anew when a part of the hosts is looked at again."""

    @property
    def exit_code(self) -> Exit:
        """Drift wherever it is known beats what is unknown."""
        states = {report.state for report in self.hosts.values()}
        known = (finding for finding in self.fabric if not finding.unknown)
        if State.DRIFT in states or any(finding.severity is not Severity.INFO for finding in known):
            return Exit.DRIFT
        unknown = State.UNKNOWN in states or any(finding.unknown for finding in self.fabric)
        return Exit.UNKNOWN if unknown else Exit.IN_SYNC

    def only(self, hosts: Iterable[str]) -> Self:
        """What was found of some of the hosts; what all of them show together is not in it."""
        return type(self)({host: self.hosts[host] for host in hosts if host in self.hosts})

    def updated(self, part: Self) -> Self:
        """The same fabric after a part of its hosts was looked at again."""
        facts = self.facts.updated(part.hosts, part.facts)
        return type(self)({**self.hosts, **part.hosts}, facts.findings(), facts)


def audit(
    collected: Iterable[Collected],
    wants: Mapping[str, Wants],
    watch: Callable[[HostReport], None] = lambda _: None,
    waivers: Waivers = NO_WAIVERS,
    profiles: Mapping[str, str] | None = None,
) -> AuditReport:
    """Judge hosts as they come; ``watch`` is told of each.

    Args:
        collected: one for each host of ``wants``, in any order, and of others why there is none.
        wants: what each host is told, by host and feature.
        watch: is given each host's report as soon as there is one.
        waivers: what the fabric accepts.
        profiles: the profile of each host; all are of one where they are not given.
    """
    facts = Facts()
    reports: dict[str, HostReport] = {}
    for item in collected:
        report = _judged(item, wants.get(item.host, {}), facts, (profiles or {}).get(item.host, ""))
        reports[item.host] = waivers.apply(report)
        watch(reports[item.host])
    order = dict.fromkeys((*wants, *reports))
    return AuditReport({host: reports[host] for host in order if host in reports}, facts.findings(), facts)


def _judged(item: Collected, wants: Wants, facts: Facts, profile: str) -> HostReport:
    """One host's report; what it is compared in with others is noted. No other host pays for what is odd about it."""
    report = judge(item, wants)
    if not isinstance(item.result, Failure):
        try:
            facts.note(item.host, item.result, wants, profile)
        except Exception as error:
            return replace(report, rows=(*report.rows, stumbled("", blame(error))))
    return report
