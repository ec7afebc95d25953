"""Plain data → YAML text, for files that people read and compare: the same data always gives the same bytes.

Block style, but one line for a list of scalars and for each mapping in a list; None is left empty. Text that a reader
of YAML 1.1 (Ansible) or of YAML 1.2 (:mod:`.source`) would take for a number or a boolean is quoted.

PyYAML decides how text is quoted unless that is plain to see: its own emitter takes minutes for a large fabric.
"""

import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

import yaml

from gpufab_cli.spec.source import scalar

STEP = 2  # columns of indentation


class OneLine(dict[str, Any]):
    """A mapping written on one line."""


def dumps(data: Mapping[str, Any]) -> str:
    """The text of a mapping, keys in the order given."""
    return "".join(f"{line}\n" for line in _mapping(data, 0)) if data else "{}\n"


def _mapping(data: Mapping[Any, Any], column: int) -> Iterator[str]:
    for key, value in data.items():
        head = f"{' ' * column}{_scalar(key, flow=False)}:"
        if value and isinstance(value, Mapping) and not isinstance(value, OneLine):
            yield head
            yield from _mapping(value, column + STEP)
        elif isinstance(value, (list, tuple)) and not all(isinstance(item, (int, str)) for item in value):
            yield head
            yield from (f"{' ' * (column + STEP)}- {_flow(item)}" for item in value)
        elif value is None:
            yield head
        else:
            yield f"{head} {_flow(value) if isinstance(value, (Mapping, list, tuple)) else _scalar(value, flow=False)}"


def _flow(value: Any) -> str:
    """A value on one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_scalar(key, flow=True)}: {_flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(_flow, value)) + "]"
    return _scalar(value, flow=True)


def _scalar(value: Any, *, flow: bool) -> str:
    if isinstance(value, str):
        return _text(value, flow)
    if value is None or isinstance(value, bool):
        return str(value).lower() if value is not None else "null"
    return str(value) if isinstance(value, int) else _asked(value, flow)


_PLAIN = re.compile(r"[A-Za-z0-9_/](?:[A-Za-z0-9_./ -]*[A-Za-z0-9_./-])?")
"""Text without any character that means something to YAML."""

_WITH_COLONS = re.compile(r"[A-Za-z0-9][A-Za-z0-9:._/-]*")
"""PCI and MAC addresses, among others: a flow mapping would end the key at a colon."""


@lru_cache(maxsize=1 << 14)  # keys and common values come again and again
def _text(text: str, flow: bool) -> str:
    plain = bool(_PLAIN.fullmatch(text))
    if plain and _reads_as_text(text):
        return text
    if plain or (flow and _WITH_COLONS.fullmatch(text)):
        return f"'{text}'"
    return _asked(text, flow)


def _reads_as_text(text: str) -> bool:
    """Whether neither YAML 1.1 nor 1.2 takes it for something else."""
    return isinstance(scalar(text), str) and _RESOLVER.resolve(yaml.ScalarNode, text, (True, False)) == _TEXT


_RESOLVER: Any = yaml.resolver.Resolver()
_TEXT = _RESOLVER.DEFAULT_SCALAR_TAG


class _Dumper(yaml.SafeDumper):
    """PyYAML's own, but nothing takes several lines, and what YAML 1.2 alone takes for a number is quoted too."""


def _represent(dumper: yaml.SafeDumper, data: str) -> yaml.Node:
    style = None if isinstance(scalar(data), str) else "'"
    return dumper.represent_scalar(_TEXT, data, style=style if data.isprintable() else '"')


_Dumper.add_representer(str, _represent)


def _asked(value: Any, flow: bool) -> str:
    """A scalar as PyYAML writes it: in a list on one line, or on the line of its key."""
    data: Any = [value] if flow else {"k": value}
    text = yaml.dump(data, Dumper=_Dumper, default_flow_style=flow, width=float("inf"), allow_unicode=True)
    return text[1:-2] if flow else text[3:-1]
