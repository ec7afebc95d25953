"""The program in the zip: ``collect`` for the audit, ``counters`` during an apply, ``restore`` at boot.

``collect`` reads wishes as JSON on stdin and prints one snapshot behind a marker line, so that a talkative login shell
does no harm; ``counters`` likewise the error counters of ports, and ``topology`` the devices and NVLinks. ``restore``
brings back the wishes kept on the node; it is what the systemd units start.
"""

import json
import os
import sys
from dataclasses import dataclass
from typing import Any, Callable, Dict, FrozenSet, Iterable, List, Optional, TextIO

from . import counters, desired, planning, snapshot
from .change import Impact
from .converge import Order, Outcome, Status, converge
from .features import FEATURES, WANT_TYPES
from .host import Host, HostError, Reader
from .journal import Run
from .schema import SchemaError, decode

MARKER = "--- gpufab snapshot 1 ---"
RESTORE_ALLOW = frozenset({Impact.TRAFFIC, Impact.LINK_FLAP})
"""What a restore may do to its own devices; never a management port, never more."""
OK, FAILED, USAGE = 0, 1, 2
_WORDS = "collect | counters | topology | restore early|late | restore device PCI | job begin|end|sweep | bind PROGRAM"


@dataclass(frozen=True)
class Phase:
    """When a restore runs, and which endings of a step are good enough for it."""

    name: str
    good: FrozenSet[Status] = frozenset({Status.MADE})
    device: Optional[str] = None


# What cannot be read yet, such as RDMA-CM's defaults before rdma_cm is loaded, is left to the late phase. Nobody uses a
# port before the network is up, and still that is asked: systemd also runs the phase again whenever it is told to start
# sysinit.target or the unit.
EARLY = Phase("early", frozenset({Status.MADE, Status.UNKNOWN, Status.BLOCKED}))
LATE = Phase("late")


def collect(host: Reader, stdin: TextIO, stdout: TextIO) -> int:
    """Print a snapshot of everything that the wishes on stdin ask for."""
    try:
        data = json.load(stdin)
        wants = {name: decode(WANT_TYPES[name], raw, name) for name, raw in data["wants"].items()}
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        print(f"gpufab: wishes on stdin: {error}", file=sys.stderr)  # noqa: T201
        return USAGE
    text = snapshot.dumps(planning.take(host, FEATURES, wants))
    stdout.write(f"{MARKER}\n{text}\n")
    return OK


def restore(host: Host, phase: Phase) -> int:
    """Bring back every wish kept on the node; 1 when something could not be brought back."""
    order = Order(allow=RESTORE_ALLOW, restore=True, run=Run(id=f"restore-{phase.name}", user="systemd"))
    return max([_restore_one(host, name, want, phase, order) for name, want in desired.load(host, WANT_TYPES)] + [OK])


def _restore_one(host: Host, name: str, want: Any, phase: Phase, order: Order) -> int:
    """Bring back one wish; whatever goes wrong with it, the others still get their turn."""
    try:
        if isinstance(want, SchemaError):
            raise want
        return _converge(host, name, want, phase, order)
    except (HostError, SchemaError) as error:
        _say(f"{phase.name}: {name}: {error}")
        return FAILED


def _converge(host: Host, name: str, want: Any, phase: Phase, order: Order) -> int:
    feature = FEATURES[name]
    if not feature.restored:
        return OK
    if phase.device is not None:
        want = feature.only(want, phase.device)
    outcome = converge(host, feature, want, order)
    for line in _lines(outcome):
        _say(f"{phase.name}: {line}")
    return OK if all(result.status in phase.good for result in outcome.steps) else FAILED


def _lines(outcome: Outcome) -> List[str]:
    steps = [f"{r.step.name}: {r.status.value}{': ' + r.reason if r.reason else ''}" for r in outcome.steps]
    return steps + [f"{finding.code} {'/'.join(finding.path)}: {finding.evidence}" for finding in outcome.findings]


def _say(text: str) -> None:
    print(f"gpufab: {text}", file=sys.stderr)  # noqa: T201


def _phase(argv: List[str]) -> Optional[Phase]:
    if argv[:1] == ["device"] and len(argv[1:]) == 1:
        return Phase("device", device=argv[1])
    return {"early": EARLY, "late": LATE}.get(" ".join(argv))


_JOBS = ("begin", "end", "sweep")


def _job(verb: str) -> int:
    """What a scheduler's prolog and epilog call; what became of it goes to stdout, for the log."""
    from .dvfs import job  # late: the other verbs do without

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


def _topology() -> int:
    """What ``gpufab topo`` asks for."""
    from .topology import report

    report.answer(Reader(), sys.stdout, MARKER)
    return OK


def _bind(argv: List[str]) -> int:
    """What ``gpufab-bind`` runs for each rank, which needs nothing else of all this."""
    from .bind import command

    return command.run(Reader(), argv)


def main(argv: List[str]) -> int:
    """Run one of :data:`_WORDS`."""
    if argv == ["collect"]:
        return collect(Reader(), sys.stdin, sys.stdout)
    if argv == ["counters"]:
        return OK if counters.answer(Reader(), sys.stdin, sys.stdout, MARKER) else USAGE
    if argv == ["topology"]:
        return _topology()
    if argv[:1] == ["job"] and " ".join(argv[1:]) in _JOBS:
        return _job(argv[1])
    if argv[:1] == ["bind"]:
        return _bind(argv[1:])
    phase = _phase(argv[1:]) if argv[:1] == ["restore"] else None
    if phase is None:
        _say(f"usage: {_WORDS}")
        return USAGE
    return restore(Host(), phase)
