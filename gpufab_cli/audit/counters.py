"""Whether error counters of hosts stand still: read, wait, read again."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from gpufab_cli.audit.collect import Exec, Failed, Failure, answer, ask
from gpufab_cli.fabric.hostlist import fold
from gpufab_cli.module_utils.schema import decode
from gpufab_cli.module_utils.texts import parse_json
from gpufab_cli.reach.parallel import each
from gpufab_cli.reach.target import Target

Counters = Mapping[str, Mapping[str, int]]
"""Counters by port, as PCI address, and by name."""


def ports(wants: Mapping[str, Any]) -> dict[str, str]:
    """The ports that anything is wanted of: rail by PCI address."""
    return {port.pci: port.rail for want in wants.values() for port in getattr(want, "ports", ())}


def soak(
    jobs: Mapping[str, tuple[Target, Mapping[str, Any]]],
    execute: Exec,
    soak_seconds: float,
    *,
    seconds: float,
    forks: int,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[str, str]:
    """The hosts whose error counters rose within ``soak_seconds``, or could not be read, and the reason in words.

    Args:
        jobs: the way to each host, and what is wanted of it.
        seconds: how long one host may take to tell its counters.
    """
    watched = {host: (target, ports(wants)) for host, (target, wants) in jobs.items() if ports(wants)}
    before = _read(watched, execute, seconds, forks)
    sleep(soak_seconds)
    after = _read(watched, execute, seconds, forks)
    told = {host: _told(before[host], after[host], names) for host, (_, names) in watched.items()}
    return {host: words for host, words in told.items() if words}


def _read(
    watched: Mapping[str, tuple[Target, dict[str, str]]], execute: Exec, seconds: float, forks: int
) -> dict[str, Counters | Failure]:
    def work(host: str) -> tuple[str, Counters | Failure]:
        target, names = watched[host]
        asked = ask(target, "counters", {"ports": list(names)}, execute, seconds)
        line = asked if isinstance(asked, Failure) else answer(asked, target)
        return host, line if isinstance(line, Failure) else _decoded(line)

    return dict(each(watched, work, forks))


def _decoded(line: str) -> Counters | Failure:
    try:
        found: dict[str, dict[str, int]] = decode(dict[str, dict[str, int]], parse_json(line))
        return found
    except ValueError:
        return Failure(Failed.GARBAGE, "printed no counters")


def _told(before: Counters | Failure, after: Counters | Failure, names: Mapping[str, str]) -> str:
    """What rose, ports on which the same rose together; "" when nothing did."""
    if isinstance(before, Failure):
        return f"its counters cannot be read: {before.message}"
    if isinstance(after, Failure):
        return f"its counters cannot be read: {after.message}"
    if not any(before.get(pci, {}).keys() & after.get(pci, {}).keys() for pci in names):
        return "it has no error counters that can be read"
    rose: dict[str, list[str]] = {}
    for pci, rail in names.items():
        words = ", ".join(_risen(before.get(pci, {}), after.get(pci, {})))
        if words:
            rose.setdefault(words, []).append(rail)
    return "; ".join(f"{fold(rails)} {words}" for words, rails in rose.items())


def _risen(before: Mapping[str, int], after: Mapping[str, int]) -> list[str]:
    """A counter that went down was reset, by a driver reload say: it counts from zero then."""
    differences = {name: after[name] - before[name] for name in before.keys() & after.keys()}
    risen = {name: by if by >= 0 else after[name] for name, by in differences.items()}
    return [f"{name} +{by}" for name, by in sorted(risen.items()) if by]
