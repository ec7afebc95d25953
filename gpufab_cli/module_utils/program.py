"""The program in the zip: ``collect`` for the audit, ``counters`` and ``claim`` for an apply, ``restore`` at boot.

``collect`` reads wishes as JSON on stdin and prints one snapshot behind a marker line, so that a talkative login shell
does no harm; ``counters`` likewise the error counters of ports, ``claim`` who has the node, and ``topology`` the
devices and NVLinks. ``restore`` brings back the wishes kept on the node; it is what the systemd units start. Each verb
imports its own: all of it is compiled anew whenever the program starts.
"""

import os
import sys
from typing import Callable, Dict, Iterable, List, TextIO

from .host import Host, HostError, Reader
from .schema import SchemaError, decode
from .texts import parse_json

MARKER = "--- gpufab snapshot 1 ---"
OK, FAILED, USAGE = 0, 1, 2
_WORDS = (
    "collect | counters | topology | claim | restore early|late | restore device PCI | job begin|end|sweep | "
    "bind PROGRAM"
)


def collect(host: Reader, stdin: TextIO, stdout: TextIO) -> int:
    """Print a snapshot of everything that the wishes on stdin ask for."""
    from . import planning, snapshot
    from .features import FEATURES, WANT_TYPES

    try:
        data = parse_json(stdin.read())
        wants = {name: decode(WANT_TYPES[name], raw, name) for name, raw in data["wants"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        print(f"gpufab: wishes on stdin: {error}", file=sys.stderr)  # noqa: T201
        return USAGE
    text = snapshot.within(planning.take(host, FEATURES, wants, stumbling=True))
    stdout.write(f"{MARKER}\n{text}\n")
    return OK


_JOBS = ("begin", "end", "sweep")


def _job(verb: str) -> int:
    """What a scheduler's prolog and epilog call; what became of it goes to stdout, for the log."""
    from .dvfs import job

    run: Dict[str, Callable[[Host], Iterable[str]]] = {
        "begin": lambda host: job.begin(host, os.environ),
        "end": lambda host: job.end(host, os.environ),
        "sweep": job.sweep,
    }
    try:
        for line in run[verb](Host()):
            print(f"gpufab: {line}")  # noqa: T201
    except (HostError, SchemaError) as error:
        print(f"gpufab: job {verb}: {error}")  # noqa: T201
        return FAILED
    return OK


def _counters() -> int:
    """What is watched during an apply."""
    from . import counters

    return OK if counters.answer(Reader(), sys.stdin, sys.stdout, MARKER) else USAGE


def _claim() -> int:
    """How an apply keeps another from disturbing a node at the same time."""
    from . import claim

    return OK if claim.answer(Host(), sys.stdin, sys.stdout, MARKER) else USAGE


def _topology() -> int:
    """What ``gpufab topo`` asks for."""
    from .topology import report

    report.answer(Reader(), sys.stdout, MARKER)
    return OK


def _bind(argv: List[str]) -> int:
    """What ``gpufab-bind`` runs for each rank."""
    from .bind import command

    return command.run(Reader(), argv)


def _restore(argv: List[str]) -> int:
    """What the systemd units start."""
    from . import arrival
    from .restore import find_phase, restore

    words, seconds = arrival.split(argv)
    phase = find_phase(words)
    if phase is None:
        return _usage()
    host = Host()
    good = arrival.brought(host, phase.name, phase.device, seconds, lambda: restore(host, phase))
    return OK if good else FAILED


def _usage() -> int:
    print(f"gpufab: usage: {_WORDS}", file=sys.stderr)  # noqa: T201
    return USAGE


def main(argv: List[str]) -> int:
    """Run one of :data:`_WORDS`."""
    if argv == ["collect"]:
        return collect(Reader(), sys.stdin, sys.stdout)
    if argv == ["counters"]:
        return _counters()
    if argv == ["claim"]:
        return _claim()
    if argv == ["topology"]:
        return _topology()
    if argv[:1] == ["job"] and " ".join(argv[1:]) in _JOBS:
        return _job(argv[1])
    if argv[:1] == ["bind"]:
        return _bind(argv[1:])
    if argv[:1] == ["restore"]:
        return _restore(argv[1:])
    return _usage()
