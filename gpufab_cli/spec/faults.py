"""Several faults found in one place of a spec, raised at once through pydantic."""

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Fault:
    """One contradiction: where, relative to the model that found it, and what to do."""

    loc: tuple[Any, ...]
    message: str
    hint: str = ""


class Faults(ValueError):  # noqa: N818 (many, so no Error)
    """What a validator raises to report more than one error, each with its own place."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(fault.message for fault in self.faults))


def raise_any(faults: Iterable[Fault]) -> None:
    """Raise :class:`Faults` if there is any."""
    found = tuple(faults)
    if found:
        raise Faults(found)


def did_you_mean(name: object, known: Iterable[object]) -> str:
    """A hint towards the closest of the known names, else the list of them."""
    names = sorted(str(item) for item in known)
    close = difflib.get_close_matches(str(name), names, n=1)
    if close:
        return f"did you mean {close[0]}?"
    return f"known: {', '.join(names)}" if names else "none is declared"
