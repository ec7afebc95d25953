"""A limit on how long a module may take, kept by the module itself, on the node: no lock is held for ever."""

import json
import os
import signal
import sys
from contextlib import contextmanager
from typing import Any, Iterator

from .host import HostError

GRACE_SECONDS = 60
"""What is left for the undo of the step that took too long, and for saying so."""


@contextmanager
def time_limit(seconds: int) -> Iterator[None]:
    """Fail what takes longer with HostError, and after the grace end the process; 0 waits for ever.

    Raises:
        HostError: the time is over.
    """
    if not seconds:
        yield
        return

    def give_up(*_: Any) -> None:
        """Neither the step nor its undo has come to an end."""
        words = f"no end within {seconds} s, nor of the undo within {GRACE_SECONDS} s more: look at the node"
        sys.stdout.write(json.dumps({"failed": True, "msg": words}) + "\n")
        sys.stdout.flush()
        os._exit(1)

    def over(*_: Any) -> None:
        signal.signal(signal.SIGALRM, give_up)
        signal.alarm(GRACE_SECONDS)
        raise HostError(f"no end within {seconds} s")

    before = signal.signal(signal.SIGALRM, over)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
