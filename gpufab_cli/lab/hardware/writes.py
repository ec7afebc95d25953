"""The write log and the two faults that strike at the Nth write.

Every write to the machine, through either face, passes `Writes.write`: what an audit leaves here, it did.
"""

import errno
import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from gpufab_cli.lab.hardware.state import Fault, State

_POLL_S = 0.05


class Writes:
    """Lets writes pass one by one, counts them against the stall and fail faults, and logs them."""

    def __init__(self, path: Path, state: State) -> None:
        self._path = path
        self._state = state
        self._changed = threading.Condition()

    @contextmanager
    def write(
        self, face: str, target: str, value: str = "", alive: Callable[[], bool] = lambda: True
    ) -> Iterator[None]:
        """Guards one write; `alive` says whether who asked for it still waits.

        Raises:
            OSError: EIO when a fault strikes, EINTR when the writer died while stalled; else what the body raises.
        """
        try:
            self._strike(alive)
            yield
        except OSError as error:
            self._log(face, target, value, error.errno or errno.EIO)
            raise
        self._log(face, target, value, 0)

    def set_fault(self, fault: Fault) -> None:
        """Puts a counted fault in force."""
        with self._changed:
            self._state.set_fault(fault)

    def clear_fault(self, name: str, target: str | None = None) -> None:
        """Ends a fault and lets stalled writers go on."""
        with self._changed:
            self._state.clear_fault(name, target)
            self._changed.notify_all()

    def _strike(self, alive: Callable[[], bool]) -> None:
        with self._changed:
            fails = self._counts_down("fail-at-write")
            if self._counts_down("stall-at-write"):
                while self._state.fault("stall-at-write"):
                    self._changed.wait(_POLL_S)
                    if not alive():
                        raise OSError(errno.EINTR, os.strerror(errno.EINTR))
        if fails:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def _counts_down(self, name: str) -> bool:
        """Counts a write against a fault and tells whether this is the one; a failed write spends its fault."""
        fault = self._state.fault(name)
        if fault is None:
            return False
        if fault.count > 1:
            self._state.set_fault(Fault(name, fault.target, fault.count - 1))
            return False
        if name == "fail-at-write":
            self._state.clear_fault(name)
        return True

    def _log(self, face: str, target: str, value: str, code: int) -> None:
        entry = {"time": time.time(), "face": face, "target": target, "value": value, "errno": code}
        with self._path.open("a") as log:
            log.write(json.dumps(entry) + "\n")
