"""What ``mpirun --report-bindings`` printed: where each rank was bound, and whether that can be meant. Pure.

Open MPI 4 says ``[node:pid] MCW rank 0 bound to socket 0[core 0[hwt 0-1]]: [BB/..][../..]``, with a map of all packages
of the node, and likewise under ``--display-map``; Open MPI 5 ``[node:pid] Rank 0 bound to package[0][core:0-23]``, with
none. Both: ``... is not bound (or bound to all available processors)``.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

_RANK = re.compile(
    r"\[(?P<host>[^\s\[\]:]+)(?::\d+)?\]\s+(?:MCW )?[Rr]ank (?P<rank>\d+) (?P<where>(?:is not )?bound\b.*)"
)
_NODE = re.compile(r"Data for node: (?P<host>\S+)")
_MAPPED = re.compile(r"Process rank: (?P<rank>\d+) (?P<where>Bound: .*)")
_PACKAGE = re.compile(r"(?:socket |package\[)(\d+)")
_MAP = re.compile(r"\[<?[.B~][./B~<>]*")  # one package of Open MPI 4's map; <> are NUMA nodes


@dataclass(frozen=True)
class Bound:
    """One rank.

    Attributes:
        packages: those that its CPUs are of; () where it is not bound.
        of: how many the node has; None where the report does not tell.
    """

    host: str
    rank: int
    packages: tuple[int, ...] = ()
    of: int | None = None


@dataclass(frozen=True)
class Verdict:
    """What is to be said of the ranks of one node.

    Attributes:
        status: pass, fail, or unknown where the report does not tell enough.
    """

    host: str
    status: Literal["pass", "fail", "unknown"]
    words: str
    ranks: tuple[int, ...]


def parse(text: str) -> tuple[Bound, ...]:
    """The ranks that a report tells of, whatever else stands between; once each, also when two kinds of report do."""
    found: dict[tuple[str, int, tuple[int, ...]], int | None] = {}
    node = ""
    for line in text.splitlines():
        named = _NODE.search(line)
        node = named["host"] if named else node
        match = _RANK.search(line) or _MAPPED.search(line)
        if match:
            host = match.groupdict().get("host") or node
            packages = tuple(sorted({int(number) for number in _PACKAGE.findall(match["where"])}))
            key = (host, int(match["rank"]), packages)
            found[key] = found.get(key) or len(_MAP.findall(match["where"])) or None
    return tuple(Bound(*key, of) for key, of in found.items())


def judge(ranks: Sequence[Bound], packages: int | None = None) -> tuple[Verdict, ...]:
    """A verdict for each node, in the order of the report.

    Args:
        packages: how many each node has, where the operator says so.
    """
    hosts = dict.fromkeys(bound.host for bound in ranks)
    seen = max((number for bound in ranks for number in bound.packages), default=0) + 1
    most = packages or (seen if seen > 1 else None)
    return tuple(_node(host, [bound for bound in ranks if bound.host == host], most) for host in hosts)


def _node(host: str, ranks: Sequence[Bound], most: int | None) -> Verdict:
    """``most``: how many packages a node has that does not tell it itself; None where that is not known."""
    numbers = tuple(bound.rank for bound in ranks)
    tied = [bound for bound in ranks if bound.packages]
    if not tied:
        words = f"{len(ranks)} ranks are not bound by mpirun, as it is meant behind gpufab-bind"
        return Verdict(host, "pass", words, numbers)
    used = sorted({number for bound in tied for number in bound.packages})
    packages = max((bound.of for bound in ranks if bound.of is not None), default=most)
    rest = f"; {len(ranks) - len(tied)} are not bound" if len(tied) < len(ranks) else ""
    if len(used) > 1 or len(tied) == 1 or packages == 1:
        return Verdict(host, "pass", f"{len(tied)} ranks on {_listed(used)}{rest}", numbers)
    alone = f"{'' if rest else 'all '}{len(tied)} ranks are on {_listed(used)}"
    if packages is None:
        return Verdict(host, "unknown", f"{alone}; Open MPI 5 does not tell whether there are others{rest}", numbers)
    return Verdict(host, "fail", f"{alone} of {packages}: GPUs of the others are far from them{rest}", numbers)


def _listed(packages: Sequence[int]) -> str:
    return ("package " if len(packages) == 1 else "packages ") + ", ".join(map(str, packages))


def rows(verdicts: Sequence[Verdict]) -> Iterator[str]:
    """The verdicts for a terminal, a line each."""
    for verdict in verdicts:
        yield f"{verdict.host}: {verdict.status}: {verdict.words}"
