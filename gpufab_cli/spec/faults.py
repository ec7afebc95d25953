"""Several faults found in one place of a spec, raised at once through pydantic."""

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
