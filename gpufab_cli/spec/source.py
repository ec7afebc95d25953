"""YAML text → plain data that remembers its lines.

Read as YAML 1.2 core, so that ``no`` and ``on`` are text and ``010`` is ten. What an inventory has no use for and an
attacker has (tags, anchors, aliases) is refused, and depth and size are bounded. Lists become tuples: a spec is frozen.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import yaml

from gpufab_cli import disk
from gpufab_cli.errors import GpufabError, SpecErrors

Loc = tuple[Any, ...]

KEY = "[key]"  # the last step of a path that means the key itself, as in pydantic's own paths

MAX_BYTES = 1 << 25  # a lock has some 1200 bytes a host with eight rails
MAX_DEPTH = 16  # the deepest legal path of a fabric.yml has seven steps

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml where it is built in: eight times as fast

_INT = re.compile(r"[-+]?[0-9]{1,40}|0o[0-7]{1,40}|0x[0-9a-fA-F]{1,40}")  # longer ones stay text, and are refused
_FLOAT = re.compile(r"[-+]?(?:(?:\.[0-9]+|[0-9]+\.[0-9]*)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)")
_WORDS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


@dataclass(frozen=True)
class Mark:
    """Where a value stands, and what is written there if it is a scalar."""

    line: int
    written: str = ""


@dataclass(frozen=True)
class Document:
    """The data of one file, and the mark of every path in it."""

    name: str
    data: Any
    text: str = field(repr=False)

    @cached_property
    def marks(self) -> dict[Loc, Mark]:
        """Where everything stands: read anew, for a right file never needs it and a lock is large."""
        marks: dict[Loc, Mark] = {}
        _Builder(self.name, marks).document(yaml.parse(self.text, Loader=_LOADER))
        return marks

    def mark(self, loc: Loc) -> Mark:
        """The mark of a path, or that of the closest thing around it (a missing key has none of its own)."""
        while loc and loc not in self.marks:
            loc = loc[:-1]
        return self.marks.get(loc, Mark(1))

    def error(self, loc: Loc, message: str, hint: str = "") -> GpufabError:
        """An error that names file, line and path."""
        path = dotted(loc)
        return GpufabError(f"{self.name}:{self.mark(loc).line}: {f'{path}: ' if path else ''}{message}", hint)


def dotted(loc: Loc) -> str:
    """A path as people write it: ``hosts[0].name``."""
    return "".join(_step(part) for part in loc if part != KEY).lstrip(".")


def _step(part: Any) -> str:
    if isinstance(part, str):
        return f".{part}" if re.fullmatch(r"[\w./-]+", part) else f".{part!r:.40}"
    return f"[{part}]"


def scalar(text: str) -> Any:
    """What a plain (unquoted) scalar means by the core schema of YAML 1.2."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text):
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if _FLOAT.fullmatch(text):
        return float(text)
    return text


def read(path: Path) -> Document:
    """Read a YAML file.

    Raises:
        SpecErrors: it is not a file that can be read, not UTF-8, too large, or not the YAML described above.
    """
    return parse(_text(path), str(path))


def _text(path: Path) -> str:
    try:
        raw = disk.read(path, MAX_BYTES)
    except FileNotFoundError as error:
        hint = "name the file with -f, or run in its directory"
        raise SpecErrors([GpufabError(f"{path}: {error.strerror}", hint)]) from error
    except GpufabError as error:
        raise SpecErrors([error]) from error
    if len(raw) > MAX_BYTES:
        raise SpecErrors([GpufabError(f"{path}: larger than {MAX_BYTES} bytes", "write hosts as ranges: gpu[001-032]")])
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw[: error.start].count(b"\n") + 1
        raise SpecErrors([GpufabError(f"{path}:{line}: not UTF-8 text", "save the file as UTF-8")]) from error


def parse(text: str, name: str) -> Document:
    """Parse YAML text; ``name`` is what errors call it.

    Raises:
        SpecErrors: as :func:`read`.
    """
    builder = _Builder(name, None)
    try:
        data = builder.document(yaml.parse(text, Loader=_LOADER))
        if builder.errors:  # once more, to tell the lines that they refer to
            builder = _Builder(name, {})
            builder.document(yaml.parse(text, Loader=_LOADER))
    except yaml.MarkedYAMLError as error:
        raise SpecErrors([_syntax_error(text, name, error)]) from error
    except yaml.YAMLError as error:
        raise SpecErrors([GpufabError(f"{name}: not YAML: {str(error).splitlines()[0]}")]) from error
    if builder.errors:
        raise SpecErrors(builder.errors)
    return Document(name, data, text)


def _syntax_error(text: str, name: str, error: yaml.MarkedYAMLError) -> GpufabError:
    mark = error.problem_mark or error.context_mark
    line = mark.line if mark else 0
    at = (text.splitlines() or [""])[line : line + 1]
    hint = "indent with spaces, not tabs" if at and at[0].startswith("\t") else ""
    return GpufabError(f"{name}:{line + 1}: {error.problem or error.context}", hint)


class _Builder:
    """Builds data from the parser's events, and marks if there is a place for them; collects what is wrong."""

    def __init__(self, name: str, marks: dict[Loc, Mark] | None) -> None:
        self.name = name
        self.marks = marks
        self.errors: list[GpufabError] = []

    def document(self, stream: Iterator[Any]) -> Any:
        data: Any = None
        documents = 0
        for event in stream:
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self.fault(event, "a second document", "a fabric is one YAML document")
                    break
            elif not isinstance(event, (yaml.StreamStartEvent, yaml.StreamEndEvent, yaml.DocumentEndEvent)):
                data = self.value(event, stream, ())
        return data

    def fault(self, event: Any, message: str, hint: str = "") -> None:
        self.errors.append(GpufabError(f"{self.name}:{event.start_mark.line + 1}: {message}", hint))

    def value(self, event: Any, stream: Iterator[Any], loc: Loc) -> Any:
        self.refuse(event)
        if len(loc) > MAX_DEPTH:
            self.fault(event, "nested too deeply")
            raise SpecErrors(self.errors)
        if self.marks is not None:
            self.marks[loc] = Mark(event.start_mark.line + 1, getattr(event, "value", ""))
        if isinstance(event, yaml.MappingStartEvent):
            return self.mapping(stream, loc)
        if isinstance(event, yaml.SequenceStartEvent):
            return self.sequence(stream, loc)
        if isinstance(event, yaml.ScalarEvent):
            return self.scalar(event)
        return None  # an alias, refused above

    def refuse(self, event: Any) -> None:
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            self.fault(event, "anchors and aliases are not taken", "write it out; hosts share what their profile says")
        elif event.tag is not None:
            self.fault(event, f"tag {event.tag} is not taken", "write plain values")

    def scalar(self, event: Any) -> Any:
        return scalar(event.value) if event.style in (None, "") else event.value

    def sequence(self, stream: Iterator[Any], loc: Loc) -> tuple[Any, ...]:
        items: list[Any] = []
        for event in stream:
            if isinstance(event, yaml.SequenceEndEvent):
                break
            items.append(self.value(event, stream, (*loc, len(items))))
        return tuple(items)

    def mapping(self, stream: Iterator[Any], loc: Loc) -> dict[Any, Any]:
        found: dict[Any, Any] = {}
        for event in stream:
            if isinstance(event, yaml.MappingEndEvent):
                break
            key = self.key(event)
            if key in found:
                self.twice(event, (*loc, key))
            where = (*loc, key)
            if self.marks is not None:
                self.marks.setdefault((*where, KEY), Mark(event.start_mark.line + 1, event.value))
            value = self.value(next(stream), stream, where)
            found.setdefault(key, value)
        return found

    def twice(self, event: Any, loc: Loc) -> None:
        first = self.marks[*loc, KEY].line if self.marks else 0
        self.fault(event, f"{dotted(loc)}: given twice, first on line {first}")

    def key(self, event: Any) -> Any:
        if not isinstance(event, yaml.ScalarEvent):
            self.fault(event, "a key must be a plain value")
            raise SpecErrors(self.errors)
        self.refuse(event)
        if event.value == "<<" and event.style in (None, ""):
            self.fault(event, "merge keys are not taken", "write it out; hosts share what their profile says")
        return self.scalar(event)
