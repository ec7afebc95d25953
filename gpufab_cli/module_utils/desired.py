"""The wishes kept on the node, /etc/gpufab/desired.d/FEATURE.json: what restore brings back at boot.

Keeping one is itself planned: a first step ``persist`` without impact, made even where the rest is refused, so that a
deleted or stale file is drift like any other.
"""

import json
from typing import Any, Iterator, Mapping, Optional, Tuple

from .change import ABSENT, Change, Step, Where
from .host import Host, Reader, sha256
from .schema import SchemaError, decode, encode
from .texts import parse_json

DESIRED_D = "/etc/gpufab/desired.d"
FORMAT = 1
PERSIST = "persist"


def desired_path(feature: str) -> str:
    """Where the wish for a feature is kept."""
    return f"{DESIRED_D}/{feature}.json"


def desired_text(feature: str, want: Any) -> str:
    """The file's text; the same wish always gives the same bytes."""
    data = {"format": FORMAT, "feature": feature, "want": encode(want)}
    return json.dumps(data, sort_keys=True) + "\n"


def wish_digest(feature: str, want: Any) -> str:
    """What tells one wish from another."""
    return sha256(desired_text(feature, want).encode())


def digest(host: Reader, feature: str) -> Any:
    """What is kept for a feature: a digest, ABSENT or Unknown."""
    content = host.read_bytes(desired_path(feature))
    return sha256(content) if isinstance(content, bytes) else content


def persist_step(feature: str, want: Any, kept: Any) -> Optional[Step]:
    """The step that keeps the wish, if it is not kept yet."""
    desired = wish_digest(feature, want)
    if kept == desired:
        return None
    change = Change((desired_path(feature),), kept, desired, "node.desired", Where.PERSISTED)
    return Step(f"{PERSIST} {feature}", (change,))


def persist(host: Host, feature: str, want: Any, step: Step) -> None:
    """Make the persist step, or undo it when its wish is ABSENT."""
    if step.changes[0].desired is ABSENT:
        host.remove(desired_path(feature))
    else:
        host.put(desired_path(feature), desired_text(feature, want).encode(), 0o600)


def load(host: Reader, want_types: Mapping[str, type]) -> Iterator[Tuple[str, Any]]:
    """Every wish kept on the node whose feature is known here; a SchemaError in place of one that is damaged.

    In the order of ``want_types``: features build on one another.
    """
    names = host.names(DESIRED_D)
    found = names if isinstance(names, tuple) else ()
    for feature in want_types:
        if f"{feature}.json" in found:
            try:
                yield feature, _parse(feature, host.read(desired_path(feature)), want_types[feature])
            except SchemaError as error:
                yield feature, error


def _parse(feature: str, text: Any, want_type: type) -> Any:
    if not isinstance(text, str):
        raise SchemaError(f"{desired_path(feature)}: {text}")
    try:
        data = parse_json(text)
    except ValueError as error:
        raise SchemaError(f"{desired_path(feature)}: {error}") from error
    if not isinstance(data, dict) or data.get("format") != FORMAT:
        raise SchemaError(f"{desired_path(feature)}: not of format {FORMAT}")
    return decode(want_type, data.get("want"), desired_path(feature))
