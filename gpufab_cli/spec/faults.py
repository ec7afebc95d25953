"""Several faults found in one place of a spec, raised at once through pydantic."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel, ValidationError


@dataclass(frozen=True)
class Fault:
    """One contradiction: where, relative to the model that found it, and what to do."""

    loc: tuple[Any, ...]
    message: str
    hint: str = ""


@dataclass(frozen=True)
class Nested:
    """What pydantic finds wrong with something put together from several places: ``loc`` is the one to be told."""

    loc: tuple[Any, ...]
    model: type[BaseModel]
    failure: ValidationError

    @property
    def message(self) -> str:
        """Its first fault."""
        return self.failure.errors()[0]["msg"]


class Faults(ValueError):  # noqa: N818 (many, so no Error)
    """What a validator raises to report more than one error, each with its own place."""

    def __init__(self, faults: Iterable[Fault | Nested]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(fault.message for fault in self.faults))


def raise_any(faults: Iterable[Fault | Nested]) -> None:
    """Raise :class:`Faults` if there is any."""
    found = tuple(faults)
    if found:
        raise Faults(found)
