"""Who is about to disturb this node: /run/gpufab/claim.json, by which the applies of two operators meet.

An apply claims a host before it drains it, and renews the claim as long as it runs. No other run makes a step with
impact meanwhile. What outlives its time, or its boot, holds nobody up; but where the host was drained for it, it still
says that nobody has given the host back.
"""

import json
import sys
from dataclasses import dataclass, replace
from typing import Any, Dict, Optional, TextIO, Tuple, Union

from .change import Absent, Unknown
from .host import NODE_LOCK, BusyLockError, Host, HostError, Reader
from .schema import SchemaError, decode, encode
from .texts import parse_json

FILE = "/run/gpufab/claim.json"
CLAIM_LOCK = "/run/gpufab-claim.lock"
"""Its own, as a module holds the node's for as long as its steps take, and the claim is renewed meanwhile."""

TAKE_SECONDS = 10.0
"""How long a claim waits for a module or a restore that is at work on the node."""


@dataclass(frozen=True)
class Claim:
    """Who has the node.

    ``since`` is the node's clock, for people; ``expires`` is in seconds of its boot clock (CLOCK_BOOTTIME), which
    nobody sets back; ``drained`` says that the host is taken out of service for it.
    """

    run: str
    user: str
    controller: str
    since: float
    expires: float
    drained: bool = False


Found = Union[Claim, Absent, Unknown]


@dataclass(frozen=True)
class Question:
    """What a controller asks for: take, renew, release or leave. ``seconds``: for how long.

    ``instead_of`` are earlier runs of the same controller that are known to have ended.
    """

    do: str
    run: str
    user: str = ""
    controller: str = ""
    seconds: float = 0.0
    drained: bool = False
    instead_of: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Answer:
    """What became of it.

    ``problem`` is "" where it was done; ``before`` is the claim that was there, ``left_s`` how long it still has.
    """

    problem: str = ""
    before: Optional[Claim] = None
    left_s: float = 0.0


def read(host: Reader) -> Found:
    """The claim on the node, live or not."""
    text = host.read(FILE)
    if not isinstance(text, str):
        return text
    try:
        claim: Claim = decode(Claim, parse_json(text), FILE)
    except (ValueError, SchemaError) as error:
        return Unknown(f"{FILE}: {error}")
    return claim


def left(host: Reader, claim: Claim) -> float:
    """How many seconds the claim still has; 0.0 when it is over."""
    return max(0.0, claim.expires - host.uptime())


def in_the_way(host: Reader, run: str, *, needed: bool) -> str:
    """Why a run may make no step with impact now; "" when it may.

    Args:
        needed: the run has claimed the node: without its own live claim somebody may have given the node back.
    """
    found = read(host)
    if isinstance(found, Unknown):
        return f"cannot tell who has claimed the node: {found.reason}"
    live = isinstance(found, Claim) and left(host, found) > 0
    if isinstance(found, Claim) and live and found.run != run:
        return words(found, left(host, found))
    if needed and not (isinstance(found, Claim) and live):
        return "this run's claim on the node is over: the node may be in service again"
    return ""


def words(claim: Claim, seconds: float) -> str:
    """Who holds a node, and for how long."""
    since = _time(claim.since)
    return f"claimed by {claim.user} on {claim.controller} (run {claim.run}) since {since}, for {seconds:.0f} s more"


def left_drained(claim: Claim) -> str:
    """What a claim that is over says of a host that nobody has given back."""
    return f"drained by {claim.user} on {claim.controller} (run {claim.run}) since {_time(claim.since)}, not given back"


def _time(epoch: float) -> str:
    import time

    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(epoch))


def settle(host: Host, question: Question) -> Answer:
    """Do what is asked for. A claim is taken between two modules, never beside one that is at work."""
    try:
        if question.do == "take":
            with host.lock(NODE_LOCK, TAKE_SECONDS), host.lock(CLAIM_LOCK, TAKE_SECONDS):
                return _take(host, question)
        with host.lock(CLAIM_LOCK, TAKE_SECONDS):
            return {"renew": _renew, "leave": _leave, "release": _release}[question.do](host, question)
    except BusyLockError:
        return Answer("a module or a restore is at work on the node")
    except HostError as error:
        return Answer(str(error))


def _take(host: Host, question: Question) -> Answer:
    found = read(host)
    if isinstance(found, Unknown):
        return Answer(found.reason)
    before = found if isinstance(found, Claim) else None
    seconds = left(host, before) if before is not None else 0.0
    if before is not None and seconds and before.run not in (question.run, *question.instead_of):
        return Answer(words(before, seconds), before, seconds)
    since = before.since if before is not None and before.run == question.run else host.now()
    expires = host.uptime() + question.seconds
    _put(host, Claim(question.run, question.user, question.controller, since, expires, question.drained))
    return Answer(before=before)


def _renew(host: Host, question: Question) -> Answer:
    """A claim that is over is not renewed: somebody else may have had the node meanwhile."""
    found = read(host)
    if not isinstance(found, Claim) or found.run != question.run or not left(host, found):
        return Answer("the claim is over")
    _put(host, replace(found, expires=host.uptime() + question.seconds))
    return Answer()


def _leave(host: Host, question: Question) -> Answer:
    """The run ends, and the host stays drained: that is all that the claim says from now on."""
    found = read(host)
    if isinstance(found, Claim) and found.run == question.run:
        _put(host, replace(found, expires=0.0))
    return Answer()


def _release(host: Host, question: Question) -> Answer:
    found = read(host)
    if isinstance(found, Claim) and found.run == question.run:
        host.remove(FILE)
    return Answer()


def _put(host: Host, claim: Claim) -> None:
    host.put(FILE, (json.dumps(encode(claim)) + "\n").encode(), 0o644)


def answer(host: Host, stdin: TextIO, stdout: TextIO, marker: str) -> bool:
    """Answer one question as JSON on stdin behind the marker; whether it could be read."""
    try:
        data: Dict[str, Any] = json.load(stdin)
        question: Question = decode(Question, data["claim"])
        if question.do not in ("take", "renew", "leave", "release"):
            raise ValueError(question.do)
    except (ValueError, KeyError, TypeError, SchemaError) as error:
        print(f"gpufab: claim on stdin: {error}", file=sys.stderr)  # noqa: T201
        return False
    stdout.write(f"{marker}\n{json.dumps(encode(settle(host, question)))}\n")
    return True
