"""Plan a feature on a snapshot as every user of a plan does: with its wish kept, and no reset asked for twice."""

from dataclasses import replace
from typing import Any, Dict, Mapping

from . import access, claim, desired, journal, record
from .change import ABSENT, Plan
from .devices import gather as gather_devices
from .feature import Feature
from .host import Reader
from .snapshot import Snapshot
from .texts import blame


def take(
    host: Reader, features: Mapping[str, Feature], wants: Mapping[str, Any], *, stumbling: bool = False
) -> Snapshot:
    """One look at the node, as far as the wishes ask for it.

    Args:
        stumbling: for an audit: an unexpected exception of one feature is noted, and costs no other its values.
    """
    devices = gather_devices(host)
    seen: Dict[str, Any] = {}
    stumbles: Dict[str, str] = {}
    for name, want in wants.items():
        try:
            seen[name] = features[name].gather(host, devices, want)
        except Exception as error:
            if not stumbling:
                raise
            stumbles[name] = blame(error)
    return Snapshot(
        boot_id=_line(host, "/proc/sys/kernel/random/boot_id"),
        uid=host.uid(),
        devices=devices,
        seen=seen,
        stumbles=stumbles,
        desired={name: desired.digest(host, name) for name in wants if features[name].restored},
        wishes={name: desired.wish_digest(name, want) for name, want in wants.items()},
        records={name: record.read(host, name) for name in wants},
        kernel=_line(host, "/proc/sys/kernel/osrelease"),
        cut_off=journal.cut_off(host) if host.uid() == 0 else (),  # nobody else may read it, which is told anyway
        modes=access.read(host) if access.FEATURE in wants else {},
        claim=left_behind(host),
    )


def left_behind(host: Reader) -> claim.Found:
    """A claim that is over and was never given back; one that lives is its own run's affair."""
    found = claim.read(host)
    if not isinstance(found, claim.Claim):
        return found
    return found if found.drained and not claim.left(host, found) else ABSENT


def plan(feature: Feature, snapshot: Snapshot, want: Any, *, keep: bool = True) -> Plan:
    """The feature's own plan, behind the step that keeps its wish on the node (``keep``; a restore only reads it)."""
    own = record.without_stuck(feature.plan(snapshot, want), snapshot.records[feature.name], snapshot.boot_id)
    own = replace(own, findings=own.findings + journal.findings(snapshot.cut_off, feature.name))
    if feature.name == access.FEATURE:
        return access.added(own, snapshot.modes)
    if not (keep and feature.restored):
        return own
    step = desired.persist_step(feature.name, want, snapshot.desired[feature.name])
    return replace(own, steps=((step,) if step is not None else ()) + own.steps)


def _line(host: Reader, path: str) -> str:
    text = host.read(path)
    return text if isinstance(text, str) else ""
