"""HUP, INT and TERM of an apply: all three end it the same way, once, at a moment when nothing is torn."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator

SIGNALS = (signal.SIGHUP, signal.SIGINT, signal.SIGTERM)


class InterruptedApply(KeyboardInterrupt):
    """The operator, or the end of the session, has ended the apply."""


class _Interrupts:
    def __init__(self) -> None:
        self.name = ""
        self.deferring = 0
        self.handling = False

    def hear(self, number: int, _: object) -> None:
        """Raise on the first signal; what is being cleaned up then is not torn by a second."""
        if self.name:
            return
        self.name = signal.Signals(number).name
        if not self.deferring:
            raise InterruptedApply(self.name)


_state = _Interrupts()


@contextlib.contextmanager
def handled() -> Iterator[None]:
    """Have the three signals raise :class:`InterruptedApply` in the main thread."""
    if _state.handling or threading.current_thread() is not threading.main_thread():
        yield
        return
    _state.name, _state.deferring, _state.handling = "", 0, True
    before = [signal.signal(number, _state.hear) for number in SIGNALS]
    try:
        yield
    finally:
        for number, handler in zip(SIGNALS, before, strict=True):
            signal.signal(number, handler)
        _state.handling = False


@contextlib.contextmanager
def deferred() -> Iterator[Callable[[], bool]]:
    """Raise only at the end, and say meanwhile whether one has come: ansible-runner must not be torn.

    Raises:
        InterruptedApply: one has come.
    """
    with handled():
        _state.deferring += 1
        try:
            yield lambda: bool(_state.name)
        finally:
            _state.deferring -= 1
        if _state.name:
            raise InterruptedApply(_state.name)
