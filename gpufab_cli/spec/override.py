"""What a line of ``hosts`` says otherwise than its profile: merged as JSON merge patches are (RFC 7396).

Mappings are merged key by key, lists and plain values are replaced whole, and ``null`` takes away what the profile
says. The result is validated as if it had been written out as a profile of its own.
"""

from collections.abc import Mapping
from typing import Any, TypeVar

from pydantic import BaseModel

P = TypeVar("P", bound=BaseModel)


def overridden(profile: P, override: Mapping[str, Any]) -> P:
    """The profile with the override merged into it.

    Raises:
        pydantic.ValidationError: the merged whole is no profile; paths are those of a profile.
    """
    written = profile.model_dump(exclude_unset=True, by_alias=True)
    return type(profile).model_validate(merge(written, override))


def merge(base: Mapping[Any, Any], patch: Mapping[Any, Any]) -> dict[Any, Any]:
    """The base with the patch applied; neither is changed."""
    found = dict(base)
    for key, value in patch.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, Mapping):
            below = found.get(key)
            found[key] = merge(below if isinstance(below, Mapping) else {}, value)
        else:
            found[key] = value
    return found
