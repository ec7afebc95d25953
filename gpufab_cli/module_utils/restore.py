"""Restore: bring back the wishes kept on the node, at boot and when a device comes back. systemd starts it."""

import sys
from dataclasses import dataclass
from typing import Any, FrozenSet, List, Optional

from . import desired
from .change import Impact
from .converge import Order, Outcome, Status, converge
from .features import FEATURES, WANT_TYPES
from .host import Host, HostError
from .journal import Run
from .schema import SchemaError

RESTORE_ALLOW = frozenset({Impact.TRAFFIC, Impact.LINK_FLAP})
"""What a restore may do to its own devices; never a management port, never more."""


@dataclass(frozen=True)
class Phase:
    """When a restore runs, and which endings of a step are good enough for it."""

    name: str
    good: FrozenSet[Status] = frozenset({Status.MADE})
    device: Optional[str] = None
    left_out: FrozenSet[str] = frozenset()
    """Features that have their turn in another phase."""


# What cannot be read yet, such as RDMA-CM's defaults before rdma_cm is loaded, is left to the late phase. Nobody uses a
# port before the network is up, and still that is asked: systemd also runs the phase again whenever it is told to start
# sysinit.target or the unit.
# The network waits for it: GPUs, whose driver starts when it is asked, are left to the late phase as well.
EARLY = Phase("early", frozenset({Status.MADE, Status.UNKNOWN, Status.BLOCKED}), left_out=frozenset({"dvfs"}))
LATE = Phase("late")


def find_phase(argv: List[str]) -> Optional[Phase]:
    """The phase that the words of a command line name."""
    if argv[:1] == ["device"] and len(argv[1:]) == 1:
        return Phase("device", device=argv[1])
    return {"early": EARLY, "late": LATE}.get(" ".join(argv))


def restore(host: Host, phase: Phase) -> bool:
    """Bring back every wish kept on the node; whether all could be brought back."""
    order = Order(allow=RESTORE_ALLOW, restore=True, run=Run(id=f"restore-{phase.name}", user="systemd"))
    wants = ((name, want) for name, want in desired.load(host, WANT_TYPES) if name not in phase.left_out)
    brought = [_restore_one(host, name, want, phase, order) for name, want in wants]
    return all(brought)


def _restore_one(host: Host, name: str, want: Any, phase: Phase, order: Order) -> bool:
    """Bring back one wish; whatever goes wrong with it, the others still get their turn."""
    try:
        if isinstance(want, SchemaError):
            raise want
        return _converge(host, name, want, phase, order)
    except (HostError, SchemaError) as error:
        _say(f"{phase.name}: {name}: {error}")
    except Exception as error:  # a mistake of gpufab's own must not cost the other wishes a boot either
        _say(f"{phase.name}: {name}: unexpected {type(error).__name__}: {error}")
    return False


def _converge(host: Host, name: str, want: Any, phase: Phase, order: Order) -> bool:
    feature = FEATURES[name]
    if not feature.restored:
        return True
    if phase.device is not None:
        want = feature.only(want, phase.device)
    outcome = converge(host, feature, want, order)
    for line in _lines(outcome):
        _say(f"{phase.name}: {line}")
    return all(result.status in phase.good for result in outcome.steps)


def _lines(outcome: Outcome) -> List[str]:
    steps = [f"{r.step.name}: {r.status.value}{': ' + r.reason if r.reason else ''}" for r in outcome.steps]
    return steps + [f"{finding.code} {'/'.join(finding.path)}: {finding.evidence}" for finding in outcome.findings]


def _say(text: str) -> None:
    print(f"gpufab: {text}", file=sys.stderr)  # noqa: T201
