"""What was done to this node, by whom and when: one JSON object a line in /var/lib/gpufab/journal.jsonl.

A line is on disk before its step begins, and another after it has ended, so that a run that was killed shows.
"""

import json
from dataclasses import dataclass
from typing import Any

from .change import Step
from .host import Host
from .schema import encode

FILE = "/var/lib/gpufab/journal.jsonl"
LIMIT_BYTES = 4_000_000
"""Beyond this the journal is moved to journal.jsonl.1, replacing the one before."""


@dataclass(frozen=True)
class Run:
    """Who asks for the changes: a run id, a user, and the digest of the spec they come from."""

    id: str = ""
    user: str = ""
    spec: str = ""


def write(host: Host, run: Run, feature: str, step: Step, event: str, *, reason: str = "") -> None:
    """Append one event of a step: begin, made, failed, undone, not-undone."""
    entry: Any = {"time": round(host.now(), 3), "run": encode(run), "feature": feature, "step": step.name}
    entry["event"] = event
    if reason:
        entry["reason"] = reason
    if event == "begin":
        entry["changes"] = [
            {"path": list(change.path), "old": encode(change.current), "new": encode(change.desired)}
            for change in step.changes
        ]
    _rotate(host)
    host.append(FILE, json.dumps(entry, sort_keys=True))


def _rotate(host: Host) -> None:
    text = host.size(FILE)
    if isinstance(text, int) and text > LIMIT_BYTES:
        host.rename(FILE, FILE + ".1")
