"""Which hosts a command is limited to."""

import re
from collections.abc import Iterable, Sequence
from fnmatch import fnmatchcase

from gpufab_cli.errors import GpufabError, did_you_mean
from gpufab_cli.spec import ranges


def select(pattern: str | None, hosts: Sequence[str]) -> tuple[str, ...]:
    """The hosts that a pattern names, in their own order; all without one.

    A pattern is a list, with commas, of names, ranges such as ``gpu[01-04]`` and wildcards such as ``gpu0*``.

    Raises:
        GpufabError: a part of it names no host: a slip must not quietly mean fewer hosts.
    """
    if pattern is None:
        return tuple(hosts)
    chosen: set[str] = set()
    for part in re.split(r",(?![^\[]*\])", pattern):
        names = set(_matching(part.strip(), hosts))
        if not names:
            raise GpufabError(f"no active host matches {part.strip()!r}", did_you_mean(part.strip(), hosts))
        chosen |= names
    return tuple(host for host in hosts if host in chosen)


def _matching(part: str, hosts: Iterable[str]) -> Iterable[str]:
    try:
        patterns = ranges.expand(part)
    except ValueError as error:
        raise GpufabError(str(error), "write ranges as gpu[01-04]") from error
    return (host for host in hosts if any(fnmatchcase(host, one) for one in patterns))
