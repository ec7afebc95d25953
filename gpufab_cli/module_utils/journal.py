"""What was done to this node, by whom and when: one JSON object a line in /var/lib/gpufab/journal.jsonl.

A line is on disk before its step begins, and another after it has ended, so that a run that was killed shows. Nothing
is replayed from it: every run plans from how the node is.
"""

import json
import time
from dataclasses import dataclass
from functools import partial
from typing import Any, Callable, Dict, Tuple, Union

from .change import Finding, Step, Unknown
from .host import Host, HostError, Reader
from .schema import encode
from .texts import parse_json

FILE = "/var/lib/gpufab/journal.jsonl"
LIMIT_BYTES = 4_000_000
"""Beyond this the journal is moved to journal.jsonl.1, replacing the one before."""
TAIL_BYTES = 1 << 16
"""How much of its end is looked at for steps that were cut off: an audit reads no more."""
CODE = "node.cut-off"


@dataclass(frozen=True)
class Run:
    """Who asks for the changes: a run id, a user, and the digest of the spec they come from."""

    id: str = ""
    user: str = ""
    spec: str = ""


def write(host: Host, run: Run, feature: str, step: Step, event: str, *, reason: str = "") -> None:
    """Append one event of a step: begin, made, failed, undone, not-undone."""
    details: Dict[str, Any] = {"reason": reason} if reason else {}
    if event == "begin":
        details["changes"] = [
            {"path": list(change.path), "old": encode(change.current), "new": encode(change.desired)}
            for change in step.changes
        ]
    _append(host, run, feature, step.name, event, **details)


def _append(host: Host, run: Run, feature: str, step: str, event: str, **details: Any) -> None:
    entry = {"time": round(host.now(), 3), "run": encode(run), "feature": feature, "step": step, "event": event}
    _rotate(host)
    host.append(FILE, json.dumps({**entry, **details}, sort_keys=True))


def _rotate(host: Host) -> None:
    text = host.size(FILE)
    if isinstance(text, int) and text > LIMIT_BYTES:
        host.rename(FILE, FILE + ".1")


@dataclass(frozen=True)
class CutOff:
    """A step that was begun and has not ended: its run was killed, or the power failed, or it is at work now."""

    feature: str
    step: str
    run: str
    user: str
    time: float


CutOffs = Union[Tuple[CutOff, ...], Unknown]


def cut_off(host: Reader) -> CutOffs:
    """The steps that the journal's end shows as begun and not ended, oldest first."""
    text = host.tail(FILE, TAIL_BYTES)
    if isinstance(text, Unknown):
        return text
    begun: Dict[Tuple[str, str], CutOff] = {}
    for line in text.splitlines() if isinstance(text, str) else ():
        entry, event = _entry(line)
        begun.pop((entry.feature, entry.step), None)
        if event == "begin":
            begun[entry.feature, entry.step] = entry
    return tuple(begun.values())


def _entry(line: str) -> Tuple[CutOff, str]:
    """A line and its event; a line that is damaged is about nothing."""
    try:
        data = parse_json(line)
        run, when = data["run"], float(data["time"])
        words = (data["feature"], data["step"], run.get("id", ""), run.get("user", ""), data["event"])
    except (ValueError, LookupError, TypeError, AttributeError):
        words, when = ("",) * 5, 0.0
    feature, step, run_id, user, event = map(str, words)
    return CutOff(feature, step, run_id, user, when), event


def findings(found: CutOffs, feature: str) -> Tuple[Finding, ...]:
    """What is to be said of a feature's steps that have not ended; of a journal that cannot be read, with the node."""
    if isinstance(found, Unknown):
        return (Finding(CODE, (FILE,), found.reason, unknown=True),) if feature == "node" else ()
    return tuple(Finding(CODE, (entry.step,), _words(entry)) for entry in found if entry.feature == feature)


def _words(entry: CutOff) -> str:
    try:
        when = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(entry.time))
    except (OverflowError, ValueError, OSError):
        when = "an unknown time"
    run = entry.run or "an unnamed run"
    return f"begun at {when} by {run}{' of ' + entry.user if entry.user else ''}, and not ended"


class Log:
    """The log of one pass over a feature.

    Where it may be ``lost``, as in a restore, what cannot be written is noted there and stops nothing: what a restore
    sets needs no disk. Elsewhere a journal that cannot be written raises HostError.
    """

    def __init__(self, host: Host, run: Run, feature: str, *, may_be_lost: bool) -> None:
        self._host, self._run, self._feature, self._may_be_lost = host, run, feature, may_be_lost
        self.lost = ""

    def event(self, step: Step, event: str, reason: str = "") -> None:
        """Append one event of a step."""
        self.keep(lambda: write(self._host, self._run, self._feature, step, event, reason=reason))

    def settle(self, found: CutOffs, planned: Tuple[Step, ...]) -> None:
        """Note that of steps which were cut off nothing is left to do: they are not planned any more."""
        names = {step.name for step in planned}
        for entry in found if isinstance(found, tuple) else ():
            if entry.feature == self._feature and entry.step not in names:
                self.keep(partial(_append, self._host, self._run, self._feature, entry.step, "settled"))

    def keep(self, write_down: Callable[[], None]) -> None:
        """Have something written down, or note why it cannot be."""
        try:
            write_down()
        except HostError as error:
            if not self._may_be_lost:
                raise
            self.lost = self.lost or str(error)
