"""The JSON Schema of fabric.yml, for editors: made from the same types that check it.

It says what one value may be. What two values must agree on only ``gpufab validate`` knows.
"""

from typing import Any

from pydantic.json_schema import GenerateJsonSchema

from gpufab_cli.spec.model import FabricSpec

DIALECT = GenerateJsonSchema.schema_dialect


class _Untitled(GenerateJsonSchema):
    """Leaves out titles, which would but repeat the keys."""

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 (pydantic's signature)
        """No key gets a title."""
        return False

    def get_title_from_name(self, name: str) -> str:
        """What a model is called: its name."""
        return name


def json_schema() -> dict[str, Any]:
    """The schema of a whole fabric.yml."""
    found = FabricSpec.model_json_schema(by_alias=True, schema_generator=_Untitled)
    return {"$schema": DIALECT, **found, "title": "fabric.yml"}
