"""What all parts of a spec are made of."""

from typing import Any

from pydantic import AfterValidator, BaseModel, ConfigDict


class Model(BaseModel):
    """What all parts of a spec have in common: no unknown key, no silent conversion, no later change.

    The text below a field is its description in the schema that ``gpufab schema`` prints.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, use_attribute_docstrings=True)


def _not_empty(value: Any) -> Any:
    if not value:
        raise ValueError("empty, at least one is wanted")
    return value


NotEmpty = AfterValidator(_not_empty)
