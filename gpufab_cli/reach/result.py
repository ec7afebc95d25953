"""What comes of a command on a host; apart from how it is run, for those that only judge it: paramiko starts slowly."""

from dataclasses import dataclass

OUTPUT_BYTES = 8 * 1024 * 1024
"""Nothing that gpufab asks of a host answers with more; a host that does is cut off there."""


@dataclass(frozen=True)
class Result:
    """How a command ended; ``cut`` when it printed more than :data:`OUTPUT_BYTES`."""

    rc: int
    stdout: bytes
    stderr: bytes
    cut: bool = False


class UnreachableError(Exception):
    """The host cannot be reached, or is not the one that is known; with a hint where there is one."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


class LostError(UnreachableError):
    """The connection failed before login in a way that may be chance, such as at a jump host that has too many."""


class OverdueError(Exception):
    """The host did not answer in time; the message says what it was busy with."""
