"""How a check compares. One that has compared nothing has failed: a loop over an empty list must not pass for proof."""

from collections.abc import Iterator
from contextlib import contextmanager

NOTHING = "nothing was compared: what was read holds nothing of what this check is about"
_seen: list[str] = []


def compare(right: bool, wrong: str) -> None:
    """Hold one thing against what is declared.

    Raises:
        AssertionError: it is otherwise; ``wrong`` says how.
    """
    _seen.append(wrong)
    if not right:
        raise AssertionError(wrong)


def settled(why: str) -> None:
    """Note that there is nothing to compare, for a reason that was read from the node and is not merely absent."""
    _seen.append(why)


@contextmanager
def comparing() -> Iterator[None]:
    """Fail what runs inside unless it has compared something, or has settled why there is nothing.

    Raises:
        AssertionError: neither.
    """
    _seen.clear()
    yield
    if not _seen:
        raise AssertionError(NOTHING)
