"""Restore: bring back the wishes kept on the node, at boot and when a device comes back. systemd starts it."""

import sys
from dataclasses import dataclass, field
from typing import Any, FrozenSet, List, Optional, Tuple

from . import desired
from .change import Impact
from .converge import Order, Status, converge
from .features import FEATURES, WANT_TYPES
from .host import Host, HostError
from .journal import Run
from .schema import SchemaError
from .texts import blame

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


@dataclass
class _Restore:
    """What one restore has come to so far: the steps that it could not make, and why it has no log, if it has none."""

    host: Host
    phase: Phase
    order: Order
    left: List[str] = field(default_factory=list)
    unlogged: str = ""

    def say(self, text: str) -> None:
        print(f"gpufab: {self.phase.name}: {text}", file=sys.stderr)  # noqa: T201

    def fail(self, name: str, why: str) -> None:
        self.say(f"{name}: {why}")
        self.left.append(name)


def restore(host: Host, phase: Phase) -> bool:
    """Bring back every wish kept on the node; whether all could be brought back."""
    order = Order(allow=RESTORE_ALLOW, restore=True, run=Run(id=f"restore-{phase.name}", user="systemd"))
    own = _Restore(host, phase, order)
    for name, want in desired.load(host, WANT_TYPES):
        if name not in phase.left_out:
            _restore_one(own, name, want)
    if own.unlogged:
        own.say(f"restored without its log: {own.unlogged}; what cannot be read back counts as never set from now on")
    if own.left:
        own.say(f"not restored: {', '.join(own.left)}")
    return not own.left


def _restore_one(own: _Restore, name: str, want: Any) -> None:
    """Bring back one wish; whatever goes wrong with it, the others still get their turn."""
    try:
        if isinstance(want, SchemaError):
            raise want
        feature = FEATURES[name]
        if feature.restored:
            _restore_wish(own, feature, want if own.phase.device is None else feature.only(want, own.phase.device))
    except (HostError, SchemaError) as error:
        own.fail(name, str(error))
    except Exception as error:  # a mistake of gpufab's own must not cost the other wishes a boot either
        own.fail(name, f"unexpected {blame(error)}")


def _restore_wish(own: _Restore, feature: Any, want: Any) -> None:
    """Bring back a wish as a whole; one that gpufab stumbles over, device by device: that costs the others nothing."""
    devices = _devices(want)
    try:
        _converge(own, feature, want)
    except (HostError, SchemaError):
        raise
    except Exception as error:
        if own.phase.device is not None or not devices:
            raise
        own.say(f"{feature.name}: unexpected {blame(error)}; each device is restored on its own")
        for device in (*devices, ""):
            _restore_device(own, feature, feature.only(want, device), device)


def _restore_device(own: _Restore, feature: Any, want: Any, device: str) -> None:
    try:
        _converge(own, feature, want)
    except Exception as error:
        own.fail(f"{feature.name} {device or 'of no device'}", f"unexpected {blame(error)}")


def _devices(want: Any) -> Tuple[str, ...]:
    """The PCI addresses of the ports and GPUs that a wish is about."""
    pinned = (item for kind in ("ports", "gpus") for item in getattr(want, kind, ()))
    return tuple(dict.fromkeys(item.pci for item in pinned))


def _converge(own: _Restore, feature: Any, want: Any) -> None:
    outcome = converge(own.host, feature, want, own.order)
    own.unlogged = own.unlogged or outcome.unlogged
    for result in outcome.steps:
        why = result.status.value + (f": {result.reason}" if result.reason else "")
        if result.status in own.phase.good:
            own.say(f"{result.step.label}: {why}")
        else:
            own.fail(result.step.label, why)
    for finding in outcome.findings:
        own.say(f"{finding.code} {'/'.join(finding.path)}: {finding.evidence}")
