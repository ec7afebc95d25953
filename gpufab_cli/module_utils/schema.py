"""One codec between the core's frozen dataclasses and plain JSON data, and what is generated from their types.

A type says all there is to say about a value: decoding checks it, Ansible argument specs and documentation are made
from it, and pydantic takes the constraint classes below as field annotations. Declared once.
"""

import contextlib
import dataclasses
import enum
import functools
import itertools
import json
import math
import re
import sys
from typing import (
    Annotated,
    Any,
    Callable,
    Dict,
    List,
    Literal,
    Mapping,
    Sequence,
    Tuple,
    Union,
    get_args,
    get_origin,
)
from typing import get_type_hints as _get_type_hints

from .change import ABSENT, Absent, Unknown


class SchemaError(ValueError):
    """Data that does not fit its type; the message starts with the path of the offending value."""


class MisfitError(SchemaError):
    """On its way up through the data, whose path it gathers; :func:`decode` makes a plain SchemaError of it."""

    def __init__(self, message: str, *trail: str) -> None:
        super().__init__(message)
        self.trail = list(trail)

    def of(self, path: str) -> SchemaError:
        """What is said of the whole, which is at a path of its own."""
        found = (path + "".join(reversed(self.trail))).lstrip(".")
        return SchemaError(f"{found or 'value'}: {self}")


SHOWN = 200
"""So many characters of a value that does not fit are shown."""


def shown(value: Any) -> str:
    """A value as Python writes it, cut; where even that fails, as of a number of 5000 digits, its type."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):
        return f"a {type(value).__name__}"
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"


@dataclasses.dataclass(frozen=True)
class Range:
    """An integer constraint: ``low <= value <= high``."""

    low: int
    high: int

    def check(self, value: Any) -> None:
        """Raise :class:`MisfitError` unless the value lies in the range."""
        if not self.low <= value <= self.high:
            raise MisfitError(f"{shown(value)} is not in {self.low}..{self.high}")

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Dict[str, Any]]) -> Dict[str, Any]:
        return {**handler(source), "ge": self.low, "le": self.high}


@dataclasses.dataclass(frozen=True)
class Pattern:
    """A string constraint: the whole string matches ``regex``; ``meaning`` is what an error message says."""

    regex: str
    meaning: str

    def check(self, value: Any) -> None:
        """Raise :class:`MisfitError` unless the whole string matches."""
        if not re.fullmatch(self.regex, value):
            raise MisfitError(f"{shown(value)} is not {self.meaning}")

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Dict[str, Any]]) -> Dict[str, Any]:
        return {**handler(source), "pattern": f"^(?:{self.regex})$"}


@dataclasses.dataclass(frozen=True)
class Length:
    """A list constraint: exactly ``count`` items."""

    count: int

    def check(self, value: Any) -> None:
        """Raise :class:`MisfitError` unless the list has that many items."""
        if len(value) != self.count:
            raise MisfitError(f"{len(value)} items, {self.count} wanted")

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


_AS_THEY_ARE = frozenset({str, int, bool, float, type(None)})


def encode(value: Any) -> Any:
    """Plain JSON data for a value; fields that are ``None`` are left out of dataclasses."""
    kind: Any = type(value)
    if kind is float and not math.isfinite(value):
        return {"unknown": f"{value} is no number"}  # JSON has no infinity
    if kind in _AS_THEY_ARE:
        return value
    if isinstance(value, Unknown):
        return {"unknown": value.reason}
    if value is ABSENT:
        return {"absent": True}
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (list, tuple)):
        return [encode(item) for item in value]
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = ((name, getattr(value, name)) for name in _names(kind))
        return {name: encode(item) for name, item in fields if item is not None}
    if isinstance(value, Mapping):
        return {str(key): encode(item) for key, item in value.items()}
    if isinstance(value, (set, frozenset)):
        return sorted(encode(item) for item in value)
    return value


@functools.cache
def _names(cls: type) -> Tuple[str, ...]:
    return tuple(item.name for item in dataclasses.fields(cls))


def decode(kind: Any, data: Any, path: str = "") -> Any:
    """The value of type ``kind`` that ``data`` stands for.

    Raises:
        SchemaError: the data does not fit; the first fault is named by its path.
    """
    try:
        return _decoder(kind)(data)
    except MisfitError as error:
        raise error.of(path) from None
    except RecursionError as error:
        raise SchemaError(f"{path or 'value'}: nested too deeply") from error


Decoder = Callable[[Any], Any]
"""Raises :class:`MisfitError`."""


@functools.cache
def _decoder(kind: Any) -> Decoder:
    """What decodes a type. Made once: an audit decodes thousands of values of each."""
    if kind is Any:
        return _decode_any
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _checked(_decoder(args[0]), [extra for extra in args[1:] if isinstance(extra, _CONSTRAINTS)])
    if origin is Union:
        return _union(kind, args)
    if origin is Literal:
        return _one_of(args, "one of " + ", ".join(map(str, args)))
    if origin in (tuple, frozenset):
        return _sequence(origin, args)
    if origin is dict:
        return _dict(_decoder(args[0]), _decoder(args[1]))
    return _plain(kind)


def _plain(kind: Any) -> Decoder:
    if kind is Unknown:
        return lambda data: Unknown(str(_expect(_is_unknown(data), data, "an unknown")["unknown"]))
    if kind is Absent:
        return lambda data: ABSENT if _is_absent(data) else _misfit(data, "absent")
    if dataclasses.is_dataclass(kind):
        return _Record(kind)
    if isinstance(kind, type) and issubclass(kind, enum.Enum):
        known = _one_of([member.value for member in kind], f"a {kind.__name__}")
        return lambda data: kind(known(data))
    if kind is type(None):
        return _one_of((None,), "null")
    if kind is float:
        return lambda data: float(_expect(_is_number(data), data, "a number"))
    return lambda data: data if type(data) is kind else _misfit(data, f"of type {kind.__name__}")


def _misfit(data: Any, wanted: str) -> Any:
    raise MisfitError(f"{shown(data)} is not {wanted}")


def _expect(good: bool, data: Any, wanted: str) -> Any:
    return data if good else _misfit(data, wanted)


def _is_number(data: Any) -> bool:
    """Whether it is one that a float can hold."""
    return type(data) in (int, float) and -sys.float_info.max <= data <= sys.float_info.max


def _is_unknown(data: Any) -> bool:
    return isinstance(data, dict) and len(data) == 1 and "unknown" in data


def _is_absent(data: Any) -> bool:
    return isinstance(data, dict) and data == {"absent": True}


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


def _one_of(known: Sequence[Any], wanted: str) -> Decoder:
    return lambda data: data if data in known else _misfit(data, wanted)


def _checked(inner: Decoder, constraints: Sequence[Any]) -> Decoder:
    def decode_checked(data: Any) -> Any:
        value = inner(data)
        for constraint in constraints:
            constraint.check(value)
        return value

    return decode_checked


def _union(kind: Any, options: Sequence[Any]) -> Decoder:
    rest = [_decoder(option) for option in options if option not in (type(None), Unknown, Absent)]

    def decode_union(data: Any) -> Any:
        if data is None and type(None) in options:
            return None
        if Unknown in options and _is_unknown(data):
            return Unknown(str(data["unknown"]))
        if Absent in options and _is_absent(data):
            return ABSENT
        for option in rest[:-1]:
            try:
                return option(data)
            except MisfitError:
                continue
        return rest[-1](data) if rest else _expect(False, data, f"of {kind}")

    return decode_union


def _dict(key: Decoder, value: Decoder) -> Decoder:
    def decode_dict(data: Any) -> Any:
        _expect(isinstance(data, dict), data, "a mapping")
        name, found = "", {}
        try:
            for name, item in data.items():
                found[key(name)] = value(item)
        except MisfitError as error:
            error.trail.append(f".{name}")
            raise
        return found

    return decode_dict


def _sequence(origin: Any, args: Tuple[Any, ...]) -> Decoder:
    pair = origin is tuple and Ellipsis not in args
    inner = [_decoder(arg) for arg in args if arg is not Ellipsis]

    def decode_items(data: Any) -> Any:
        if pair and len(data) != len(inner):
            _misfit(data, f"a list of {len(inner)}")
        found: List[Any] = []
        try:
            for decoder, item in zip(inner if pair else itertools.repeat(inner[0]), data):
                found.append(decoder(item))
        except MisfitError as error:
            error.trail.append(f"[{len(found)}]")
            raise
        return origin(found)

    @functools.lru_cache(maxsize=1024)
    def decode_long(text: str) -> Any:
        """Long lists are alike on all ports of all hosts, such as the map of 64 DSCPs: once decoded, kept once."""
        return decode_items(json.loads(text))

    def decode_sequence(data: Any) -> Any:
        _expect(isinstance(data, (list, tuple)), data, "a list")
        if len(data) >= LONG and not isinstance(data[0], dict):
            with contextlib.suppress(MisfitError, TypeError):  # told below
                return decode_long(json.dumps(data))
        return decode_items(data)

    return decode_sequence


class _Record:
    """Decodes a dataclass. Its fields are looked at when it first does, for they may hold such a dataclass again."""

    def __init__(self, kind: Any) -> None:
        self._kind = kind

    @functools.cached_property
    def _fields(self) -> Dict[str, Decoder]:
        types = hints(self._kind)
        return {item.name: _decoder(types[item.name]) for item in dataclasses.fields(self._kind)}

    @functools.cached_property
    def _required(self) -> Tuple[str, ...]:
        missing = dataclasses.MISSING
        items = dataclasses.fields(self._kind)
        return tuple(item.name for item in items if item.default is missing and item.default_factory is missing)

    def __call__(self, data: Any) -> Any:
        _expect(isinstance(data, dict), data, "a mapping")
        fields = self._fields
        for name in data:
            if name not in fields:
                raise MisfitError(f"{name!r} is not a field of {self._kind.__name__}", f".{name}")
        for name in self._required:
            if name not in data:
                raise MisfitError("missing", f".{name}")
        name, found = "", {}
        try:
            for name, item in data.items():
                found[name] = fields[name](item)
        except MisfitError as error:
            error.trail.append(f".{name}")
            raise
        return self._kind(**found)
