"""Not too many connections through one jump host that are not logged in yet.

A jump host's sshd drops connections at random as soon as more than ``MaxStartups`` (10 unless the site says otherwise,
sshd_config(5)) are not logged in, whoever opens them.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator

from gpufab_cli.reach.ssh_config import WayError, Ways
from gpufab_cli.reach.target import Target

LIMIT = 8
"""Handshakes at a time through one jump host: OpenSSH's default less a few for everybody else."""

HELD_SECONDS = 3.0
"""A handshake that takes longer has passed the jump host and waits for a node that hangs; others may begin."""

_WAY_SECONDS = 10.0


class Handshakes:
    """Those under way, by jump host."""

    def __init__(self, limit: int = LIMIT, held_seconds: float = HELD_SECONDS) -> None:
        self._limit, self._held = limit, held_seconds
        self._doors: dict[str, threading.BoundedSemaphore] = {}
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def through(self, jump: str, waited: Callable[[float], None]) -> Iterator[Callable[[], None]]:
        """Wait for a turn; ``waited`` is told the seconds. Without a jump host there is nothing to wait for.

        Yields:
            Call it when the connection stands.
        """
        if not jump:
            yield lambda: None
            return
        with self._lock:
            door = self._doors.setdefault(jump, threading.BoundedSemaphore(self._limit))
        begin = time.monotonic()
        door.acquire()
        waited(time.monotonic() - begin)
        turn = _Turn(door)
        timer = threading.Timer(self._held, turn.end)
        timer.daemon = True
        timer.start()
        try:
            yield turn.end
        finally:
            timer.cancel()
            turn.end()


class _Turn:
    """One turn; it may be ended by several, and ends once."""

    def __init__(self, door: threading.BoundedSemaphore) -> None:
        self._door, self._lock, self._ended = door, threading.Lock(), False

    def end(self) -> None:
        with self._lock:
            if not self._ended:
                self._ended = True
                self._door.release()


def forks_through(targets: Iterable[Target], forks: int) -> int:
    """How many hosts Ansible may be at: it opens that many connections at once, through a jump host or not."""
    ways = Ways()
    return min(forks, LIMIT) if any(_has_jump(ways, target) for target in targets) else forks


def _has_jump(ways: Ways, target: Target) -> bool:
    try:
        return bool(ways.find(target, _WAY_SECONDS).jump)
    except WayError:
        return False  # Ansible says what is wrong with it
