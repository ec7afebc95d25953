"""What goes wrong for a reason the operator can act on, and the exit codes that say so."""

import difflib
import enum
from collections.abc import Iterable, Iterator, Sequence


class Exit(enum.IntEnum):
    """What a command's exit status means; the same for every command."""

    IN_SYNC = 0
    DRIFT = 1  # also: pending, refused or failed
    USAGE = 2  # also: an error in fabric.yml or its lock
    UNKNOWN = 3  # nothing is known to be wrong, but some host was unreachable or could not be read


class GpufabError(Exception):
    """An expected failure: one line, and a hint where there is something to do about it.

    Attributes:
        message: the one line, without "error:".
        hint: what to do, or "".
        exit_code: the exit status of the command.
    """

    def __init__(self, message: str, hint: str = "", exit_code: int = Exit.USAGE) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.exit_code = int(exit_code)

    def lines(self) -> Iterator[str]:
        """The lines to print on stderr."""
        yield f"error: {self.message}"
        if self.hint:
            yield f"hint: {self.hint}"


class NotLockedError(GpufabError):
    """The lock lacks a host, or a device of it: nobody can say what is wanted of that host."""

    @property
    def words(self) -> str:
        """The error and its hint in one line."""
        return self.message + (f" ({self.hint})" if self.hint else "")


class SpecErrors(GpufabError):  # noqa: N818 (many, so no Error)
    """All that is wrong with a file, so that it can be mended in one go."""

    def __init__(self, errors: Sequence[GpufabError]) -> None:
        super().__init__("; ".join(error.message for error in errors))
        self.errors = tuple(errors)

    def lines(self) -> Iterator[str]:
        """The lines to print on stderr: each error with its own hint."""
        for error in self.errors:
            yield from error.lines()


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """A hint towards the closest of the known names, else the list of them."""
    names = sorted(str(item) for item in known)
    close = difflib.get_close_matches(str(name), names, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"known: {', '.join(names)}" if names else "none is declared"
