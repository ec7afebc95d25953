"""Waivers: a deviation that the fabric accepts for a time stays in the report, and its host is in sync none the less.

Only what is known can be accepted: an unknown value stays unknown. A waiver says nothing to an apply: a setting that
gpufab is not to touch is taken out of the host's wishes by an override.
"""

import datetime
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from gpufab_cli.audit.judge import HostReport, Kind, Row
from gpufab_cli.spec.accept import Waiver

EXPIRED = "waiver.expired"


@dataclass(frozen=True)
class Waivers:
    """The waivers of each host, as they stand on a day."""

    by_host: Mapping[str, tuple[Waiver, ...]] = field(default_factory=dict)
    today: datetime.date = datetime.date.min

    @classmethod
    def of(cls, waivers: Iterable[Waiver], today: datetime.date | None = None) -> Self:
        """Those of a fabric; ``today`` is the day in UTC unless given."""
        found: dict[str, tuple[Waiver, ...]] = {}
        for waiver in waivers:
            for host in waiver.names:
                found[host] = (*found.get(host, ()), waiver)
        return cls(found, today or datetime.datetime.now(datetime.UTC).date())

    def apply(self, report: HostReport) -> HostReport:
        """The report with accepted rows marked, and a finding for each waiver that has expired and is missed."""
        waivers = self.by_host.get(report.host, ())
        if not waivers or report.failure is not None:
            return report
        rows = tuple(self._marked(row, waivers) for row in report.rows)
        return replace(report, rows=(*rows, *self._expired(rows, waivers)))

    def _marked(self, row: Row, waivers: Iterable[Waiver]) -> Row:
        valid = (waiver for waiver in waivers if waiver.expires >= self.today and _covers(waiver, row))
        waiver = next(valid, None)
        return replace(row, accepted=f"until {waiver.expires}: {waiver.reason}") if waiver else row

    def _expired(self, rows: Iterable[Row], waivers: Iterable[Waiver]) -> Iterator[Row]:
        for waiver in waivers:
            missed = [row for row in rows if not row.accepted and _covers(waiver, row)]
            if waiver.expires < self.today and missed:
                reason = f"{waiver.code} was accepted until {waiver.expires}: {waiver.reason}"
                yield Row(Kind.FINDING, EXPIRED, missed[0].feature, reason=reason)


NO_WAIVERS = Waivers()


def _covers(waiver: Waiver, row: Row) -> bool:
    if row.kind is Kind.UNKNOWN or row.code != waiver.code:
        return False
    return waiver.rail is None or waiver.rail == row.place.rail
