"""A file → its model, with every error at its line."""

from collections.abc import Iterator
from pathlib import Path
from types import UnionType
from typing import Annotated, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ValidationError

from gpufab_cli.errors import GpufabError, SpecErrors, did_you_mean
from gpufab_cli.module_utils.schema import Pattern, Range
from gpufab_cli.spec import source
from gpufab_cli.spec.faults import Faults, Nested
from gpufab_cli.spec.model import FabricSpec
from gpufab_cli.spec.source import KEY, Document, Loc

M = TypeVar("M", bound=BaseModel)

_YES_NO = {"yes", "no", "on", "off", "y", "n"}
_WANTED = {
    "string_type": "text",
    "int_type": "a whole number",
    "bool_type": "true or false",
    "tuple_type": "a list",
    "dict_type": "a mapping",
    "model_type": "a mapping",
}


def load(path: Path) -> FabricSpec:
    """The fabric a file declares.

    Raises:
        SpecErrors: all that is wrong with it.
    """
    return load_model(path, FabricSpec)


def load_model(path: Path, model: type[M]) -> M:
    """Any model from its file.

    Raises:
        SpecErrors: all that is wrong with it.
    """
    return validate(source.read(path), model)


def validate(document: Document, model: type[M]) -> M:
    """The model of a document that has been parsed.

    Raises:
        SpecErrors: all that is wrong with it, in the order of the file.
    """
    if not isinstance(document.data, dict):
        what = "the file is empty" if document.data is None else "a mapping is wanted at the top"
        raise SpecErrors([document.error((), what, f"start with one of: {', '.join(_keys(model))}")])
    try:
        return model.model_validate(document.data)
    except ValidationError as failure:
        found = [item for detail in failure.errors() for item in _located(document, model, dict(detail))]
    found.sort(key=lambda item: item[0])
    raise SpecErrors([error for _, error in found])


def _located(
    document: Document, model: type[BaseModel], detail: dict[str, Any], base: Loc = ()
) -> Iterator[tuple[int, GpufabError]]:
    """The errors one of pydantic's stands for, each with its line; ``base`` is where the model stands in the file."""
    loc = tuple(detail["loc"])
    cause = detail.get("ctx", {}).get("error")
    if not isinstance(cause, Faults):
        message, hint = _explain(document.mark((*base, *loc)).written, model, loc, detail)
        yield document.mark((*base, *loc)).line, document.error((*base, *loc), message, hint)
        return
    for fault in cause.faults:
        where = (*base, *loc, *fault.loc)
        if isinstance(fault, Nested):
            for inner in fault.failure.errors():
                yield from _located(document, fault.model, dict(inner), where)
        else:
            yield document.mark(where).line, document.error(where, fault.message, fault.hint)


def _explain(written: str, model: type[BaseModel], loc: Loc, detail: dict[str, Any]) -> tuple[str, str]:
    """What pydantic found, in the words of someone who edits YAML."""
    kind, value = detail["type"], detail["input"]
    context = detail.get("ctx", {})
    if kind == "missing":
        return "missing", ""
    if kind in ("extra_forbidden", "invalid_key"):
        return "unknown key", did_you_mean(loc[-1], _keys(_kind_at(model, loc[:-1])[0]))
    if kind in _WANTED:
        return _wrong_type(written, value, _WANTED[kind])
    if kind == "literal_error":
        return f"{_shown(value)} is not {context['expected']}", ""
    if kind == "value_error":
        return str(context["error"]), ""
    for extra in _kind_at(model, loc)[1]:
        if isinstance(extra, Range):
            return f"{value} is not in {extra.low}..{extra.high}", ""
        if isinstance(extra, Pattern):
            return f"{_shown(value)} is not {extra.meaning}", ""
    return str(detail["msg"]), ""


def _wrong_type(written: str, value: Any, wanted: str) -> tuple[str, str]:
    """The traps of YAML: a text that reads as a number, a number that reads as text, a yes that is no boolean."""
    if value is None:
        return f"empty, {wanted} is wanted", ""
    if wanted == "text" and isinstance(value, (int, float)):
        kind = "a boolean" if isinstance(value, bool) else "a number"
        return f"{written} is read as {kind}, text is wanted", f'quote it: "{written}"'
    if wanted == "a whole number" and isinstance(value, str) and type(source.scalar(value.strip())) is int:
        return f"{_shown(value)} is text, {wanted} is wanted", f"write it without quotes: {value.strip()}"
    if wanted == "true or false" and isinstance(value, str) and value.lower() in _YES_NO:
        return f"{value} is text in YAML 1.2, {wanted} is wanted", "write true or false"
    return f"{written if isinstance(value, float) else _shown(value)} is not {wanted}", ""


def _shown(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (dict, tuple)):
        return "a mapping" if isinstance(value, dict) else "a list"
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."  # noqa: PLR2004


def _keys(kind: Any) -> list[str]:
    """The keys a model takes, as the file spells them."""
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return []
    return [field.alias or name for name, field in kind.model_fields.items()]


def _kind_at(kind: Any, loc: Loc) -> tuple[Any, tuple[Any, ...]]:
    """The type that a model declares at a path, and what its annotations say."""
    base, extras = _unwrap(kind)
    for index, part in enumerate(loc):
        if part != KEY:
            is_key = loc[index + 1 :] == (KEY,)
            base, extras = _unwrap(_key_kind(base) if is_key else _step(base, part))
    return base, extras


def _step(base: Any, part: Any) -> Any:
    if isinstance(base, type) and issubclass(base, BaseModel):
        names = {field.alias or name: name for name, field in base.model_fields.items()}
        return get_type_hints(base, include_extras=True).get(names.get(part, ""), Any)
    arguments = get_args(base)
    if get_origin(base) is tuple:
        return arguments[0]
    return arguments[1] if get_origin(base) is dict else Any


def _key_kind(base: Any) -> Any:
    return get_args(base)[0] if get_origin(base) is dict else Any


def _unwrap(kind: Any) -> tuple[Any, tuple[Any, ...]]:
    """The type below Annotated and ``| None``, and the annotations met on the way."""
    extras: tuple[Any, ...] = ()
    while True:
        if get_origin(kind) is Annotated:
            kind, *more = get_args(kind)
            extras += tuple(more)
        elif get_origin(kind) in (Union, UnionType):
            kind = next(option for option in get_args(kind) if option is not type(None))
        else:
            return kind, extras
