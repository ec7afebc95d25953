"""Ask many hosts for a snapshot at once: one SSH exec each, in threads, within one time limit a host.

Whatever a host does (is not there, hangs, babbles), it ends as one :class:`Collected` of its own and holds up no other.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gpufab_cli.errors import NotLockedError
from gpufab_cli.module_utils import snapshot
from gpufab_cli.module_utils.features import SEEN_TYPES
from gpufab_cli.module_utils.program import MARKER
from gpufab_cli.module_utils.schema import SchemaError, encode
from gpufab_cli.module_utils.snapshot import Snapshot
from gpufab_cli.module_utils.texts import blame
from gpufab_cli.reach import remote_loader
from gpufab_cli.reach.parallel import each
from gpufab_cli.reach.result import OverdueError, Result, UnreachableError
from gpufab_cli.reach.target import Target

Wants = Mapping[str, Any]
Exec = Callable[[Target, list[str], bytes, float], Result]
"""Runs a command on a host with some stdin and a limit in seconds: :meth:`Ssh.exec`, or a test's own."""

LINE_LENGTH = 160
"""What is quoted of a line that a host printed; an operator's terminal has little more."""


class Failed(StrEnum):
    """Why there is no snapshot of a host."""

    UNREACHABLE = "unreachable"
    TIMEOUT = "timeout"
    GARBAGE = "garbage"
    FAILED = "failed"
    MISSING = "missing"
    """Nothing was saved of it."""
    UNLOCKED = "unlocked"
    """The lock does not say which devices are its rails, so it was not asked."""


@dataclass(frozen=True)
class Failure:
    """No snapshot, and why; ``hint`` is "" when there is nothing to advise."""

    kind: Failed
    message: str
    hint: str = ""

    @property
    def code(self) -> str:
        """The catalogue's code."""
        return f"host.{self.kind.value}"


@dataclass(frozen=True)
class Collected:
    """What came of one host. ``no_root`` says why the snapshot was not taken as root though that was wanted."""

    host: str
    result: Snapshot | Failure
    no_root: str = ""


def unlocked(hosts: Mapping[str, NotLockedError]) -> Iterator[Collected]:
    """What is known of the hosts that the lock lacks."""
    for host, error in hosts.items():
        yield Collected(host, Failure(Failed.UNLOCKED, error.message, error.hint))


def collect(
    jobs: Mapping[str, tuple[Target, Wants]], execute: Exec, *, seconds: float, forks: int
) -> Iterator[Collected]:
    """Snapshots as they come, at most ``forks`` hosts at a time, each within ``seconds``."""
    remote_loader.program()  # now, and not in each of the threads

    def work(host: str) -> Collected:
        target, wants = jobs[host]
        try:
            asked = ask(target, "collect", {"wants": encode(wants)}, execute, seconds)
            if isinstance(asked, Failure):
                return Collected(host, asked)
            return Collected(host, _read(asked, target), no_root(asked))
        except Exception as error:
            return Collected(host, _stumbled(error))

    return each(jobs, work, forks)


def ask(target: Target, verb: str, question: Any, execute: Exec, seconds: float) -> Result | Failure:
    """What the node core says on a host when it is run there with a verb and a question as JSON."""
    command = remote_loader.command(target.python, verb, root=target.become == "sudo")
    try:
        return execute(target, command, remote_loader.stdin(json.dumps(question)), seconds)
    except UnreachableError as error:
        return Failure(Failed.UNREACHABLE, str(error), error.hint)
    except OverdueError as error:
        return Failure(Failed.TIMEOUT, str(error), "raise --timeout, or look at the node")
    except Exception as error:  # such as of an SSH library over what a server sends
        return _stumbled(error)


def _stumbled(error: Exception) -> Failure:
    """What gpufab stumbles over at one host is that host's failure."""
    return Failure(Failed.FAILED, f"gpufab stumbled: {short(blame(error))}")


def answer(result: Result, target: Target) -> str | Failure:
    """The one line that the core printed behind its marker, whatever else the host printed."""
    lines = result.stdout.decode("utf-8", "replace").splitlines()
    if result.cut:
        return Failure(Failed.GARBAGE, f"printed more than {len(result.stdout)} bytes, starting with {_first(lines)}")
    if MARKER not in lines:
        return _no_snapshot(result, lines, target)
    return next(iter(lines[lines.index(MARKER) + 1 :]), "")


def _read(result: Result, target: Target) -> Snapshot | Failure:
    line = answer(result, target)
    if isinstance(line, Failure):
        return line
    try:
        return snapshot.loads(line, SEEN_TYPES)
    except SchemaError as error:
        return Failure(Failed.GARBAGE, f"a snapshot that cannot be read: {short(str(error))}")


def _no_snapshot(result: Result, stdout: list[str], target: Target) -> Failure:
    """The collector did not get to print. The last line on stderr is the gist, of a traceback too."""
    stderr = [line for line in _lines(result.stderr) if not line.startswith(remote_loader.REFUSED)]
    if result.rc == 0 or not stderr:
        return Failure(
            Failed.GARBAGE,
            f"printed {_first([*filter(str.strip, stdout), *stderr])}",
            "does a shell's start-up file end the session?",
        )
    hint = f"is {target.python} there? it is connection.python in fabric.yml" if result.rc in (126, 127) else ""
    return Failure(Failed.FAILED, f"exit {result.rc}: {short(stderr[-1])}", hint)


def no_root(result: Result) -> str:
    """Why the core did not run as root though that was wanted; "" where it did."""
    lines = (line for line in _lines(result.stderr) if line.startswith(remote_loader.REFUSED))
    return short(next(lines, "")[len(remote_loader.REFUSED) :])


def _lines(output: bytes) -> list[str]:
    return [line.strip() for line in output.decode("utf-8", "replace").splitlines() if line.strip()]


def _first(lines: list[str]) -> str:
    return repr(short(next((line.strip() for line in lines if line.strip()), "")))


def short(line: str) -> str:
    """One printable line of bounded length: a host's output must not reach the terminal's escape codes."""
    clean = "".join(char if char.isprintable() else "?" for char in line)
    return clean if len(clean) <= LINE_LENGTH else clean[: LINE_LENGTH - 1] + "…"
