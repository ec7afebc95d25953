"""Ask many hosts for a snapshot at once: one SSH exec each, in threads, within one time limit a host.

Whatever a host does (is not there, hangs, babbles), it ends as one :class:`Collected` of its own and holds up no other.
"""

import json
import queue
import threading
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from gpufab_cli.audit import stub
from gpufab_cli.execute.connect import OverdueError, Result, UnreachableError
from gpufab_cli.execute.target import Target
from gpufab_cli.module_utils import snapshot
from gpufab_cli.module_utils.features import SEEN_TYPES
from gpufab_cli.module_utils.program import MARKER
from gpufab_cli.module_utils.schema import SchemaError, encode
from gpufab_cli.module_utils.snapshot import Snapshot

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


def collect(
    jobs: Mapping[str, tuple[Target, Wants]], execute: Exec, *, seconds: float, forks: int
) -> Iterator[Collected]:
    """Snapshots as they come, at most ``forks`` hosts at a time, each within ``seconds``."""
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    done: queue.Queue[Collected | BaseException] = queue.Queue(maxsize=forks)  # full: the judge sets the pace
    for host in jobs:
        waiting.put(host)

    def work() -> None:
        while True:
            try:
                host = waiting.get_nowait()
            except queue.Empty:
                return
            try:
                done.put(_collect_one(host, *jobs[host], execute, seconds))
            except BaseException as error:  # a bug: shown where it can be, rather than a host that never ends
                done.put(error)

    for _ in range(min(forks, len(jobs))):
        threading.Thread(target=work, daemon=True).start()
    for _ in jobs:
        item = done.get()
        if isinstance(item, BaseException):
            raise item
        yield item


def _collect_one(host: str, target: Target, wants: Wants, execute: Exec, seconds: float) -> Collected:
    wishes = json.dumps({"wants": encode(wants)})
    root = target.become == "sudo"
    try:
        result = execute(target, stub.command(target.python, root=root), stub.stdin(wishes), seconds)
    except UnreachableError as error:
        return Collected(host, Failure(Failed.UNREACHABLE, str(error), error.hint))
    except OverdueError as error:
        return Collected(host, Failure(Failed.TIMEOUT, str(error), "raise --timeout, or look at the node"))
    return Collected(host, _read(result, target), _no_root(result))


def _read(result: Result, target: Target) -> Snapshot | Failure:
    lines = result.stdout.decode("utf-8", "replace").splitlines()
    if result.cut:
        return Failure(Failed.GARBAGE, f"printed more than {len(result.stdout)} bytes, starting with {_first(lines)}")
    if MARKER not in lines:
        return _no_snapshot(result, lines, target)
    after = lines[lines.index(MARKER) + 1 :]
    try:
        return snapshot.loads(after[0] if after else "", SEEN_TYPES)
    except SchemaError as error:
        return Failure(Failed.GARBAGE, f"a snapshot that cannot be read: {_short(str(error))}")


def _no_snapshot(result: Result, stdout: list[str], target: Target) -> Failure:
    """The collector did not get to print. The last line on stderr is the gist, of a traceback too."""
    stderr = [line for line in _lines(result.stderr) if not line.startswith(stub.REFUSED)]
    if result.rc == 0 or not stderr:
        return Failure(
            Failed.GARBAGE, f"printed {_first(stdout or stderr)}", "does a shell's start-up file end the session?"
        )
    hint = f"is {target.python} there? it is connection.python in fabric.yml" if result.rc in (126, 127) else ""
    return Failure(Failed.FAILED, f"exit {result.rc}: {_short(stderr[-1])}", hint)


def _no_root(result: Result) -> str:
    lines = (line for line in _lines(result.stderr) if line.startswith(stub.REFUSED))
    return _short(next(lines, "")[len(stub.REFUSED) :])


def _lines(output: bytes) -> list[str]:
    return [line.strip() for line in output.decode("utf-8", "replace").splitlines() if line.strip()]


def _first(lines: list[str]) -> str:
    return repr(_short(next((line.strip() for line in lines if line.strip()), "")))


def _short(line: str) -> str:
    """One printable line of bounded length: a host's output must not reach the terminal's escape codes."""
    clean = "".join(char if char.isprintable() else "?" for char in line)
    return clean if len(clean) <= LINE_LENGTH else clean[: LINE_LENGTH - 1] + "…"
