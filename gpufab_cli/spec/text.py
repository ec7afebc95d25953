"""Plain data → YAML text, for files that people read and compare: the same data always gives the same bytes.

Text that a reader of YAML 1.1 (Ansible) or of YAML 1.2 (:mod:`.source`) would take for a number or a boolean is quoted.
"""

from typing import Any

import yaml

from gpufab_cli.spec.source import scalar

WIDTH = 4096  # columns, so that nothing is wrapped: a device is one line of a diff


class OneLine(dict[str, Any]):
    """A mapping written on one line."""


class _Dumper(yaml.SafeDumper):
    """Block style, but one line for a list of scalars and for each mapping in a list; None is left empty."""

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 (PyYAML's signature)
        """Write equal things twice rather than by reference."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        """Indent lists below their key."""
        super().increase_indent(flow, False)


def dumps(data: dict[str, Any]) -> str:
    """The text of a mapping, keys in the order given."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=WIDTH, allow_unicode=True)


def _text(dumper: yaml.SafeDumper, data: str) -> yaml.Node:
    style = None if isinstance(scalar(data), str) else "'"
    return dumper.represent_scalar("tag:yaml.org,2002:str", data, style=style)


def _list(dumper: yaml.SafeDumper, data: list[Any]) -> yaml.Node:
    flow = all(isinstance(item, (int, str)) for item in data)
    items = [OneLine(item) if isinstance(item, dict) else item for item in data]
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=flow)


def _one_line(dumper: yaml.SafeDumper, data: OneLine) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", data, flow_style=True)


def _none(dumper: yaml.SafeDumper, _: None) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:null", "")


_Dumper.add_representer(str, _text)
_Dumper.add_representer(list, _list)
_Dumper.add_representer(OneLine, _one_line)
_Dumper.add_representer(type(None), _none)
