"""Running the node's programs. The doors alone do it (:mod:`.host`): they say which may be run."""

import os
import signal
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from typing import List, Optional, Sequence

from .texts import plain, whole_lines

# Where vendor and distribution tools live; the environment of sudo, cron or udev is not trusted to say.
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
KILL_SECONDS = 1.0


class HostError(Exception):
    """A write or a command that failed, in words for an operator."""


class HangError(HostError):
    """A command that did not come back in time."""


@dataclass(frozen=True)
class Output:
    """What a command printed and how it ended."""

    rc: int
    stdout: str
    stderr: str

    @property
    def error(self) -> str:
        """The first line that says what went wrong."""
        lines = [line for text in (self.stderr, self.stdout) for line in text.splitlines() if line.strip()]
        return f"exit {self.rc}: {lines[0].strip()}" if lines else f"exit {self.rc}"

    @property
    def whole(self) -> str:
        """The whole lines of ``stdout``."""
        return whole_lines(self.stdout)


def run(argv: Sequence[str], seconds: float, stdin: str = "") -> Output:
    """Run a command in its own session, so that a hung one is killed with all its children.

    Raises:
        HangError: it did not end within ``seconds``.
        HostError: it is not there, or cannot be started.
    """
    program = find(argv[0])
    if program is None:
        raise HostError(f"{argv[0]} is not installed")
    environment = {"PATH": SEARCH_PATH, "LC_ALL": "C", "HOME": "/"}
    try:
        process = subprocess.Popen(
            [program, *argv[1:]],
            stdin=subprocess.PIPE if stdin else subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        )
    except OSError as error:
        raise HostError(f"{argv[0]} cannot be started: {error.strerror}") from error
    try:
        stdout, stderr = process.communicate(stdin.encode() or None, timeout=seconds)
    except subprocess.TimeoutExpired as error:
        _kill(process)
        raise HangError(f"{' '.join(argv)} did not answer within {seconds:.0f} s") from error
    except BaseException:  # the module's own time is over
        _kill(process)
        raise
    return Output(process.returncode, plain(stdout), plain(stderr))


def _kill(process: "subprocess.Popen[bytes]") -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for stream in (process.stdin, process.stdout, process.stderr):
        if stream is not None:
            stream.close()
    # One that is stuck in a driver does not even die; waiting for it would be the hang that the limit is to end.
    with suppress(subprocess.TimeoutExpired):
        process.wait(KILL_SECONDS)


def find(program: str, root: str = "") -> Optional[str]:
    """Where a program is in the file system that starts at ``root``."""
    candidates: List[str] = [f"{root}{folder}/{program}" for folder in SEARCH_PATH.split(":")]
    return next((path for path in candidates if os.access(path, os.X_OK)), None)
