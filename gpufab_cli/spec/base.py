"""What all parts of a spec are made of."""

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict

from gpufab_cli.module_utils.schema import Range
from gpufab_cli.spec import ranges


class Model(BaseModel):
    """What all parts of a spec have in common: no unknown key, no silent conversion, no later change.

    The text below a field is its description in the schema that ``gpufab schema`` prints, which alone reads it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


def _not_empty(value: Any) -> Any:
    if not value:
        raise ValueError("empty, at least one is wanted")
    return value


NotEmpty = AfterValidator(_not_empty)


def _rails(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return (value,)
    return ranges.numbers(value) if isinstance(value, str) else value


Rails = Annotated[
    tuple[Annotated[int, Range(0, 63)], ...],
    NotEmpty,
    BeforeValidator(_rails, json_schema_input_type=int | str | tuple[int, ...]),
]
