"""Ansible argument specs, made from the types of dataclasses as :mod:`.schema` has them."""

import dataclasses
from typing import Annotated, Any, Dict, List, Literal, Optional, Tuple, get_args, get_origin

from .schema import Doc, hints, is_optional


def argument_spec(kind: type) -> Dict[str, Dict[str, Any]]:
    """The Ansible argument spec of a dataclass, documentation (``description``) included."""
    types = hints(kind)
    return {item.name: _argument(types[item.name], item) for item in dataclasses.fields(kind)}


def _argument(kind: Any, item: "Optional[dataclasses.Field[Any]]" = None) -> Dict[str, Any]:
    base, docs = _unwrap(kind)
    spec = _argument_type(base)
    if docs:
        spec["description"] = docs[0]
    if item is not None and item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING:
        spec["required"] = True
    return spec


def _unwrap(kind: Any) -> Tuple[Any, List[str]]:
    """The type below Annotated and Optional, and its one-line documentation."""
    docs: List[str] = []
    while True:
        if get_origin(kind) is Annotated:
            base, *extras = get_args(kind)
            docs += [extra.text for extra in extras if isinstance(extra, Doc)]
            kind = base
        elif is_optional(kind):
            (kind,) = [option for option in get_args(kind) if option is not type(None)]
        else:
            return kind, docs


def _argument_type(kind: Any) -> Dict[str, Any]:
    origin = get_origin(kind)
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        return {"type": "dict", "options": argument_spec(kind)}
    if origin is Literal:
        return {"type": "str", "choices": list(get_args(kind))}
    if origin in (tuple, frozenset):
        inner = _argument(get_args(kind)[0])
        spec = {"type": "list", "elements": inner.pop("type")}
        return {**spec, **{key: inner[key] for key in ("options", "choices") if key in inner}}
    if origin is dict or kind is dict:
        return {"type": "dict"}
    return {"type": {int: "int", str: "str", bool: "bool", float: "float"}[kind]}
