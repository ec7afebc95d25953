"""Plan a feature on a snapshot as every user of a plan does: with its wish kept, and no reset asked for twice."""

from dataclasses import replace
from typing import Any, Mapping

from . import desired, record
from .change import Plan
from .devices import gather as gather_devices
from .feature import Feature
from .host import Reader
from .snapshot import Snapshot


def take(host: Reader, features: Mapping[str, Feature], wants: Mapping[str, Any]) -> Snapshot:
    """One look at the node, as far as the wishes ask for it."""
    devices = gather_devices(host)
    return Snapshot(
        boot_id=_line(host, "/proc/sys/kernel/random/boot_id"),
        uid=host.uid(),
        devices=devices,
        seen={name: features[name].gather(host, devices, want) for name, want in wants.items()},
        desired={name: desired.digest(host, name) for name in wants if features[name].restored},
        wishes={name: desired.wish_digest(name, want) for name, want in wants.items()},
        records={name: record.read(host, name) for name in wants},
        kernel=_line(host, "/proc/sys/kernel/osrelease"),
    )


def plan(feature: Feature, snapshot: Snapshot, want: Any, *, keep: bool = True) -> Plan:
    """The feature's own plan, behind the step that keeps its wish on the node (``keep``; a restore only reads it)."""
    own = record.without_stuck(feature.plan(snapshot, want), snapshot.records[feature.name], snapshot.boot_id)
    if not (keep and feature.restored):
        return own
    step = desired.persist_step(feature.name, want, snapshot.desired[feature.name])
    return replace(own, steps=((step,) if step is not None else ()) + own.steps)


def _line(host: Reader, path: str) -> str:
    text = host.read(path)
    return text if isinstance(text, str) else ""
