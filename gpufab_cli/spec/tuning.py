"""What a QoS profile may say beyond its classes: DCQCN parameters, cable length and receive buffers."""

import dataclasses
from typing import Annotated, Any

from pydantic import Field, GetCoreSchemaHandler, create_model
from pydantic_core import CoreSchema, core_schema

from gpufab_cli.module_utils.roce.knobs import DcqcnWant
from gpufab_cli.module_utils.roce.want import PRIORITIES
from gpufab_cli.module_utils.schema import Doc, Length, Priority, Range, hints
from gpufab_cli.spec.base import Model


class _Parameters:
    """Makes pydantic take the core's own dataclass, with its ranges and descriptions: declared once."""

    def __get_pydantic_core_schema__(self, source: type, handler: GetCoreSchemaHandler) -> CoreSchema:
        types = hints(source)
        fields: dict[str, Any] = {
            item.name: (types[item.name], Field(None, description=_doc(types[item.name])))
            for item in dataclasses.fields(source)
        }
        name = source.__name__.removesuffix("Want")
        model = create_model(name, __base__=Model, __doc__="DCQCN parameters by their usual names.", **fields)
        return core_schema.no_info_after_validator_function(
            lambda found: source(**found.model_dump()), handler.generate_schema(model)
        )


def _doc(kind: Any) -> str:
    return next(extra.text for extra in kind.__metadata__ if isinstance(extra, Doc))


Dcqcn = Annotated[DcqcnWant, _Parameters()]
"""DCQCN parameters; one that is left out is not managed."""

Eight = Length(PRIORITIES)
Cable = Annotated[int, Range(1, 999)]


class Buffers(Model):
    """Receive buffers of a port, in place of those that the driver computes."""

    priority: Annotated[tuple[Priority, ...], Eight]
    """The buffer of each priority 0..7."""
    bytes: Annotated[tuple[Annotated[int, Range(0, 2**31 - 1)], ...], Eight]
    """The size of each buffer 0..7 in bytes; one that a lossless priority uses must hold the PFC headroom."""
