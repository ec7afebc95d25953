"""One codec between the core's frozen dataclasses and plain JSON data, and what is generated from their types.

A type says all there is to say about a value: decoding checks it, Ansible argument specs and documentation are made
from it, and pydantic takes the constraint classes below as field annotations. Declared once.
"""

import dataclasses
import enum
import functools
import json
import re
from typing import Annotated, Any, Callable, Dict, List, Literal, Mapping, Optional, Tuple, Union, get_args, get_origin
from typing import get_type_hints as _get_type_hints

from .change import ABSENT, Absent, Unknown


class SchemaError(ValueError):
    """Data that does not fit its type; the message starts with the path of the offending value."""


@dataclasses.dataclass(frozen=True)
class Range:
    """An integer constraint: ``low <= value <= high``."""

    low: int
    high: int

    def check(self, value: Any, path: str) -> None:
        """Raise :class:`SchemaError` unless the value lies in the range."""
        if not self.low <= value <= self.high:
            raise SchemaError(f"{path}: {value} is not in {self.low}..{self.high}")

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Dict[str, Any]]) -> Dict[str, Any]:
        return {**handler(source), "ge": self.low, "le": self.high}


@dataclasses.dataclass(frozen=True)
class Pattern:
    """A string constraint: the whole string matches ``regex``; ``meaning`` is what an error message says."""

    regex: str
    meaning: str

    def check(self, value: Any, path: str) -> None:
        """Raise :class:`SchemaError` unless the whole string matches."""
        if not re.fullmatch(self.regex, value):
            raise SchemaError(f"{path}: {value!r} is not {self.meaning}")

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Dict[str, Any]]) -> Dict[str, Any]:
        return {**handler(source), "pattern": f"^(?:{self.regex})$"}


@dataclasses.dataclass(frozen=True)
class Length:
    """A list constraint: exactly ``count`` items."""

    count: int

    def check(self, value: Any, path: str) -> None:
        """Raise :class:`SchemaError` unless the list has that many items."""
        if len(value) != self.count:
            raise SchemaError(f"{path}: {len(value)} items, {self.count} wanted")

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Dict[str, Any]]) -> Dict[str, Any]:
        schema = handler(source)
        return {**schema, "min_length": self.count, "max_length": self.count}


@dataclasses.dataclass(frozen=True)
class Doc:
    """One line about a field, for argument specs and generated documentation."""

    text: str

    def __get_pydantic_json_schema__(self, source: Any, handler: Callable[[Any], Dict[str, Any]]) -> Dict[str, Any]:
        return {**handler(source), "description": self.text}


_CONSTRAINTS = (Range, Pattern, Length)

PciAddress = Annotated[
    str, Pattern(r"[0-9a-f]{4,8}:[0-9a-f]{2}:[01][0-9a-f]\.[0-7]", "a PCI address such as 0000:18:00.0")
]
NetdevName = Annotated[str, Pattern(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,14}", "an interface name, 15 characters at most")]
MacAddress = Annotated[str, Pattern(r"[0-9a-f]{2}(?::[0-9a-f]{2}){5}", "a MAC address in lower case")]
Guid = Annotated[
    str, Pattern(r"[0-9a-f]{2}(?::[0-9a-f]{2}){7}", "a GUID of eight bytes, colons between, in lower case")
]
Priority = Annotated[int, Range(0, 7)]
Dscp = Annotated[int, Range(0, 63)]
TrafficClass = Annotated[int, Range(0, 255)]

LONG = 16
"""So many items make a list worth remembering."""


@functools.cache
def hints(cls: type) -> Mapping[str, Any]:
    """The resolved field types of a dataclass, constraints included."""
    return _get_type_hints(cls, include_extras=True)


def is_optional(kind: Any) -> bool:
    """Whether ``None`` (not managed) is a legal value of the type."""
    return get_origin(kind) is Union and type(None) in get_args(kind)


def encode(value: Any) -> Any:
    """Plain JSON data for a value; fields that are ``None`` are left out of dataclasses."""
    if isinstance(value, Unknown):
        return {"unknown": value.reason}
    if value is ABSENT:
        return {"absent": True}
    if isinstance(value, enum.Enum):
        return value.value
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value))
        return {name: encode(item) for name, item in fields if item is not None}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if isinstance(value, (set, frozenset)):
        return sorted(encode(item) for item in value)
    return value


def decode(kind: Any, data: Any, path: str = "") -> Any:
    """The value of type ``kind`` that ``data`` stands for.

    Raises:
        SchemaError: the data does not fit; the first fault is named by its path.
    """
    origin = get_origin(kind)
    if kind is Any:
        return _decode_any(data)
    if origin is Annotated:
        return _decode_annotated(kind, data, path)
    if origin is Union:
        return _decode_union(kind, data, path)
    if origin is Literal:
        return _expect(data in get_args(kind), data, path, "one of " + ", ".join(map(str, get_args(kind))))
    if origin in (tuple, frozenset):
        return _decode_sequence(kind, data, path)
    if origin is dict:
        return _decode_dict(kind, data, path)
    return _decode_plain(kind, data, path)


def _decode_plain(kind: Any, data: Any, path: str) -> Any:
    if kind is Unknown:
        return Unknown(str(_expect(_is_unknown(data), data, path, "an unknown")["unknown"]))
    if kind is Absent:
        _expect(_is_absent(data), data, path, "absent")
        return ABSENT
    if dataclasses.is_dataclass(kind):
        return _decode_dataclass(kind, data, path)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        return kind(_expect(data in [e.value for e in kind], data, path, f"a {kind.__name__}"))
    if kind is type(None):
        return _expect(data is None, data, path, "null")
    if kind is float:
        return float(_expect(type(data) in (int, float), data, path, "a number"))
    return _expect(type(data) is kind, data, path, f"of type {kind.__name__}")


def _is_unknown(data: Any) -> bool:
    return isinstance(data, dict) and set(data) == {"unknown"}


def _is_absent(data: Any) -> bool:
    return isinstance(data, dict) and data == {"absent": True}


def _expect(good: bool, data: Any, path: str, wanted: str) -> Any:
    if not good:
        raise SchemaError(f"{path or 'value'}: {data!r} is not {wanted}")
    return data


def _decode_any(data: Any) -> Any:
    if _is_unknown(data):
        return Unknown(str(data["unknown"]))
    if _is_absent(data):
        return ABSENT
    if isinstance(data, dict):
        return {key: _decode_any(item) for key, item in data.items()}
    if isinstance(data, list):
        return tuple(_decode_any(item) for item in data)
    return data


def _decode_annotated(kind: Any, data: Any, path: str) -> Any:
    base, *extras = get_args(kind)
    value = decode(base, data, path)
    for extra in extras:
        if isinstance(extra, _CONSTRAINTS):
            extra.check(value, path or "value")
    return value


def _decode_union(kind: Any, data: Any, path: str) -> Any:
    options = get_args(kind)
    if data is None and type(None) in options:
        return None
    if _is_unknown(data) and Unknown in options:
        return Unknown(str(data["unknown"]))
    if _is_absent(data) and Absent in options:
        return ABSENT
    rest = [option for option in options if option not in (type(None), Unknown, Absent)]
    if not rest:
        raise SchemaError(f"{path or 'value'}: {data!r} fits no {kind}")
    for option in rest[:-1]:
        try:
            return decode(option, data, path)
        except SchemaError:
            continue
    return decode(rest[-1], data, path)


def _decode_sequence(kind: Any, data: Any, path: str) -> Any:
    _expect(isinstance(data, (list, tuple)), data, path, "a list")
    if len(data) >= LONG and not isinstance(data[0], Mapping):
        try:
            return _decode_long(kind, json.dumps(data))
        except (SchemaError, TypeError):
            pass  # told below, with its path
    return _decode_items(kind, data, path)


@functools.lru_cache(maxsize=1024)
def _decode_long(kind: Any, text: str) -> Any:
    """Long lists are alike on all ports of all hosts, such as the map of 64 DSCPs: once decoded, kept once."""
    return _decode_items(kind, json.loads(text), "")


def _decode_items(kind: Any, data: Any, path: str) -> Any:
    args = get_args(kind)
    if get_origin(kind) is tuple and Ellipsis not in args:
        _expect(len(data) == len(args), data, path, f"a list of {len(args)}")
        return tuple(decode(a, item, f"{path}[{i}]") for i, (a, item) in enumerate(zip(args, data)))
    items = (decode(args[0], item, f"{path}[{i}]") for i, item in enumerate(data))
    return get_origin(kind)(items)


def _decode_dict(kind: Any, data: Any, path: str) -> Any:
    _expect(isinstance(data, dict), data, path, "a mapping")
    key_kind, value_kind = get_args(kind)
    return {decode(key_kind, k, path): decode(value_kind, v, f"{path}.{k}".lstrip(".")) for k, v in data.items()}


def _decode_dataclass(kind: Any, data: Any, path: str) -> Any:
    _expect(isinstance(data, dict), data, path, "a mapping")
    types = hints(kind)
    prefix = f"{path}." if path else ""
    for name in data:
        _expect(name in types, name, prefix + str(name), f"a field of {kind.__name__}")
    values = {}
    for item in dataclasses.fields(kind):
        if item.name in data:
            values[item.name] = decode(types[item.name], data[item.name], prefix + item.name)
        elif item.default is dataclasses.MISSING and item.default_factory is dataclasses.MISSING:
            raise SchemaError(f"{prefix}{item.name}: missing")
    return kind(**values)


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
