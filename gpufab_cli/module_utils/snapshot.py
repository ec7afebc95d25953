"""One look at a node: its devices, what every asked-for feature saw, and at which boot."""

import json
from dataclasses import dataclass, field, replace
from typing import Any, Dict, Mapping, Tuple, Union

from .change import ABSENT, Absent, Unknown
from .claim import Found
from .devices import Devices
from .journal import CutOffs
from .record import Record
from .schema import SchemaError, decode, encode
from .texts import parse_json

FORMAT = 1


@dataclass(frozen=True)
class Snapshot:
    """What was found.

    ``seen`` holds each feature's Seen by name; ``desired`` digests of desired.d, by feature; ``kernel`` is the running
    release.
    """

    boot_id: str
    uid: int
    devices: Devices
    seen: Dict[str, Any] = field(default_factory=dict)
    desired: Dict[str, Union[str, Absent, Unknown]] = field(default_factory=dict)
    records: Dict[str, Record] = field(default_factory=dict)
    wishes: Dict[str, str] = field(default_factory=dict)
    """Digests of what each feature was asked for: a plan for another wish may miss what this one did not read."""
    stumbles: Dict[str, str] = field(default_factory=dict)
    """Features that have no Seen, as an unexpected exception came in between, and which."""
    format: int = FORMAT
    kernel: str = ""
    cut_off: CutOffs = ()
    """The steps that the node's journal shows as begun and not ended."""
    modes: Dict[str, Union[int, Absent, Unknown]] = field(default_factory=dict)
    """Permission bits of what users must reach and of gpufab's own folders; only where the node itself is looked at."""
    claim: Found = ABSENT
    """The claim of an apply that is over and has left the node drained."""


MOST = 6 << 20
"""Characters of a snapshot that a node sends. Who collects it cuts off, and loses all of it, at 8 MiB."""


def within(snapshot: Snapshot, most: int = MOST) -> str:
    """The snapshot as JSON of bounded length: what is too long for it is left out by features, the longest first.

    A user can make some of them longer, by what he tells his jobs or by how many he runs; the others are to be seen.
    """
    text = dumps(snapshot)
    sizes = {name: len(json.dumps(encode(seen))) for name, seen in snapshot.seen.items()} if len(text) > most else {}
    for name in sorted(sizes, key=lambda feature: sizes[feature], reverse=True):
        if len(text) <= most:
            break
        seen = {feature: found for feature, found in snapshot.seen.items() if feature != name}
        why = f"{sizes[name]} characters were found, too many to be sent"
        records = {**snapshot.records, name: Unknown(why)}
        snapshot = replace(snapshot, seen=seen, records=records, stumbles={**snapshot.stumbles, name: why})
        text = dumps(snapshot)
    return text


def dumps(snapshot: Snapshot) -> str:
    """The snapshot as JSON, keys sorted."""
    return json.dumps(encode(snapshot), sort_keys=True)


def loads(text: str, seen_types: Mapping[str, type]) -> Snapshot:
    """The snapshot that JSON text stands for.

    Raises:
        SchemaError: the text is no snapshot of this format.
    """
    try:
        data: Dict[str, Any] = parse_json(text)
    except ValueError as error:
        raise SchemaError(f"snapshot: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise SchemaError(f"snapshot: not of format {FORMAT}")
    seen = {name: decode(seen_types[name], raw, name) for name, raw in _items(data, "seen", seen_types)}
    snapshot: Snapshot = decode(Snapshot, {**data, "seen": {}})
    return Snapshot(**{**snapshot.__dict__, "seen": seen})


def _items(data: Mapping[str, Any], key: str, known: Mapping[str, type]) -> Tuple[Tuple[str, Any], ...]:
    items = data.get(key)
    if not isinstance(items, dict) or not set(items) <= set(known):
        raise SchemaError(f"snapshot: {key} names a feature this version does not know")
    return tuple(items.items())
