"""What is the same on many ports and many hosts, said once."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from gpufab_cli.audit.collect import short
from gpufab_cli.audit.judge import HostReport, Kind, Row
from gpufab_cli.catalogue import Severity, catalogue
from gpufab_cli.fabric.hostlist import fold
from gpufab_cli.module_utils.texts import blame
from gpufab_cli.report.values import difference, is_digest, label, value

NAMES = 2
"""So many files are named in one line; more are counted."""
LETTERS = 600
"""What users write into their files can be endless; JSON has all of it."""


@dataclass(frozen=True)
class Line:
    """One line of the table: rows that differ in their place alone."""

    kind: Kind
    severity: Severity
    code: str
    where: str
    what: str
    text: str
    needs: str
    accepted: str


@dataclass(frozen=True)
class Block:
    """Hosts of which the very same is to be said."""

    hosts: tuple[str, ...]
    report: HostReport
    lines: tuple[Line, ...]

    @property
    def name(self) -> str:
        """The hosts in short."""
        return fold(self.hosts)


def blocks(reports: Mapping[str, HostReport]) -> tuple[Block, ...]:
    """The hosts that have something to say, those that say the same together, in the order of the first of each."""
    groups: dict[object, list[HostReport]] = {}
    for report in reports.values():
        found = lines(report.rows)
        if report.failure is not None or found:
            groups.setdefault((report.failure, found), []).append(report)
    return tuple(Block(tuple(r.host for r in group), group[0], lines(group[0].rows)) for group in groups.values())


def lines(rows: Sequence[Row]) -> tuple[Line, ...]:
    """The lines of one host; what blocks steps is said once, after their values."""
    groups: dict[object, list[Row]] = {}
    for row in rows:
        on_device = bool(row.place.device)
        name = row.place.name if on_device else ""
        alike = (row.kind, row.code, name, text(row), row.impact, row.accepted, on_device)
        groups.setdefault(alike, []).append(row)
    return (*(_line(group) for group in groups.values()), *_obstacles(rows))


def _obstacles(rows: Iterable[Row]) -> Iterator[Line]:
    """A line for each reason that blocks steps."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        if row.kind is Kind.BLOCKED:
            groups.setdefault(row.reason, []).append(row)
    for reason, blocked in groups.items():
        yield replace(_line(blocked), code="", what="blocked", text=_cut(reason), needs="")


def _line(rows: list[Row]) -> Line:
    first = rows[0]
    names = [label(name) for name in dict.fromkeys(row.place.name for row in rows) if name]
    what = ", ".join(names) if len(names) <= NAMES else f"{len(names)} {_noun(names)}"
    return Line(
        kind=first.kind,
        severity=first.severity,
        code=first.code,
        where=fold(row.place.rail or row.place.device for row in rows if row.place.device),
        what=what or catalogue()[first.code].title,
        text=f"{_cut(text(first))} (accepted {first.accepted})" if first.accepted else _cut(text(first)),
        accepted=first.accepted,
        needs=_needs(first),
    )


def _cut(words: str) -> str:
    return words if len(words) <= LETTERS else f"{words[: LETTERS - 1]}…"


def _noun(names: Iterable[str]) -> str:
    return "files" if all(name.startswith("/") for name in names) else "values"


def _needs(row: Row) -> str:
    if row.kind is Kind.BLOCKED:
        return "blocked"
    return ",".join(sorted(impact.value for impact in row.impact)) if row.kind is Kind.DRIFT else ""


def text(row: Row) -> str:
    """What is found and what is wanted, in words. A value that cannot be put into words costs no other row its own."""
    try:
        return _text(row)
    except Exception as error:
        return f"cannot be shown: {short(blame(error))}"


def _text(row: Row) -> str:
    name = row.place.name
    if row.kind is Kind.FINDING:
        return row.reason
    if row.kind is Kind.UNKNOWN:
        wanted = "" if row.desired is None or is_digest(row.desired) else f"; wanted {value(name, row.desired)}"
        return f"unknown: {row.reason}{wanted}"
    shown = difference(name, row.current, row.desired)
    return f"{shown} ({row.reason})" if row.kind is Kind.PENDING else shown
