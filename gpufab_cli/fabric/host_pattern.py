"""Which hosts a command is limited to."""

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from gpufab_cli.errors import GpufabError, did_you_mean
from gpufab_cli.spec import ranges


def select(pattern: str | None, hosts: Sequence[str]) -> tuple[str, ...]:
    """The hosts that a pattern names, in their own order; all without one.

    A pattern is a list, with commas, of names, ranges such as ``gpu[01-04]`` and wildcards such as ``gpu0*``; those
    behind a ``!`` are taken out, from all hosts where there are no others.

    Raises:
        GpufabError: a part of it names no host: a slip must not quietly mean fewer hosts.
    """
    if pattern is None:
        return tuple(hosts)
    parts = [part.strip() for part in re.split(r",(?![^\[]*\])", pattern)]
    taken = [part for part in parts if not part.startswith("!")]
    chosen = _named(taken, hosts) if taken else set(hosts)
    chosen -= _named([part[1:] for part in parts if part.startswith("!")], hosts)
    if not chosen:
        raise GpufabError(f"no host is left of {pattern!r}", "it takes out every host that it names")
    return tuple(host for host in hosts if host in chosen)


def _named(parts: Iterable[str], hosts: Sequence[str]) -> set[str]:
    chosen: set[str] = set()
    for part in parts:
        names = set(_matching(part, hosts))
        if not names:
            raise GpufabError(f"no active host matches {part!r}", did_you_mean(part, hosts))
        chosen |= names
    return chosen


def _matching(part: str, hosts: Iterable[str]) -> Iterable[str]:
    try:
        patterns = ranges.expand(part)
    except ValueError as error:
        raise GpufabError(str(error), "write ranges as gpu[01-04]") from error
    return (host for host in hosts if any(fnmatchcase(host, one) for one in patterns))
