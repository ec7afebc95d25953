"""Run one command and leave nothing of it behind: a program of its own, for it has to outlive gpufab.

``python supervise.py PID NOTE COMMAND...``: PID is gpufab, NOTE "" or a file for its own number. When the command ends,
when gpufab dies (of SIGKILL too), and on HUP, INT and TERM, every process below it is ended, also those that made a
session of their own. It imports nothing of gpufab, for it is started once a hook.
"""

import ctypes
import os
import signal
import sys
import time
from pathlib import Path

PR_SET_PDEATHSIG, PR_SET_CHILD_SUBREAPER = 1, 36  # prctl(2), linux/prctl.h
NOT_STARTED = 126
PATIENCE_SECONDS = 10.0
"""A process that is stuck in a driver does not even die; waiting for it would be the hang that is to be ended."""

ENDINGS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)
_WAITED = {*ENDINGS, signal.SIGCHLD}


def main(argv: list[str]) -> int:
    """Run the command; its exit status, or 128 and the signal that ended it."""
    parent, note, command = int(argv[0]), argv[1], argv[2:]
    signal.pthread_sigmask(signal.SIG_BLOCK, _WAITED)
    if note:
        Path(note).write_text(str(os.getpid()), encoding="utf-8")
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
    if os.getppid() != parent:
        return 128 + signal.SIGTERM
    try:
        child = os.posix_spawnp(command[0], command, os.environ, setsigmask=[], setsigdef=_WAITED)
    except OSError as error:
        sys.stderr.write(f"{command[0]} cannot be started: {error.strerror}\n")
        return NOT_STARTED
    status = _wait(child)
    _end_all()
    return status


def _wait(child: int) -> int:
    while True:
        came = signal.sigtimedwait(_WAITED, 1.0)
        ended = _reaped()
        if child in ended:
            return ended[child]
        if came is not None and came.si_signo in ENDINGS:
            return 128 + came.si_signo


def _reaped() -> dict[int, int]:
    """The children that have ended, with their exit status."""
    found: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return found
        if pid == 0:
            return found
        code = os.waitstatus_to_exitcode(status)
        found[pid] = code if code >= 0 else 128 - code


def _end_all() -> None:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while (left := below(os.getpid())) and time.monotonic() < deadline:
        for pid in left:
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        _reaped()
        time.sleep(0.01)


def below(top: int) -> set[int]:
    """The processes below one. As it is the subreaper (prctl(2)), none gets away by losing its parent."""
    children: dict[int, list[int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parent = int(stat.read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()[1])
        except (OSError, IndexError, ValueError):
            continue
        children.setdefault(parent, []).append(int(stat.parent.name))
    found: set[int] = set()
    waiting = [top]
    while waiting:
        for pid in children.get(waiting.pop(), ()):
            found.add(pid)
            waiting.append(pid)
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
