"""The JSON Schema of fabric.yml, for editors: made from the same types that check it.

It says what one value may be. What two values must agree on only ``gpufab validate`` knows.
"""

import ast
import inspect
import sys
from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema

from gpufab_cli.spec.model import FabricSpec

DIALECT = GenerateJsonSchema.schema_dialect
_SPECS = "gpufab_cli.spec."


class _Described(GenerateJsonSchema):
    """Says of each key what is written below its field; leaves out titles, which would but repeat the keys."""

    def model_schema(self, schema: Any) -> dict[str, Any]:
        """The schema of one model; one that is made of a type of the node core brings its texts along."""
        found = super().model_schema(schema)
        model: type[BaseModel] = schema["cls"]
        for name, text in _texts(model).items():
            found["properties"][model.model_fields[name].alias or name]["description"] = text
        return found

    def field_title_should_be_set(self, schema: Any) -> bool:  # noqa: ARG002 (pydantic's signature)
        """No key gets a title."""
        return False

    def get_title_from_name(self, name: str) -> str:
        """What a model is called: its name."""
        return name


def _texts(model: type[BaseModel]) -> dict[str, str]:
    """The text below each field, those of its bases too. pydantic can read them, but does so whenever gpufab starts."""
    written = (_written(kind.__module__).get(kind.__name__, {}) for kind in reversed(model.__mro__))
    return {name: text for texts in written for name, text in texts.items()}


@cache
def _written(module: str) -> dict[str, dict[str, str]]:
    """The texts below the fields of each class in a module of specs."""
    if not module.startswith(_SPECS):
        return {}
    tree = ast.parse(inspect.getsource(sys.modules[module]))
    return {node.name: dict(_fields(node)) for node in tree.body if isinstance(node, ast.ClassDef)}


def _fields(node: ast.ClassDef) -> Iterator[tuple[str, str]]:
    for field, below in pairwise(node.body):
        match field, below:
            case ast.AnnAssign(target=ast.Name(id=name)), ast.Expr(value=ast.Constant(value=str(text))):
                yield name, inspect.cleandoc(text)


def json_schema() -> dict[str, Any]:
    """The schema of a whole fabric.yml."""
    found = FabricSpec.model_json_schema(by_alias=True, schema_generator=_Described)
    return {"$schema": DIALECT, **found, "title": "fabric.yml"}
