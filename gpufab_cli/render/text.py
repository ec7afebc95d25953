"""Plain data → the YAML text of one rendered file: the same data always gives the same bytes."""

from typing import Any

import yaml

MARK = "# Rendered by gpufab"
"""What every rendered file starts with; render touches no other file."""

HEADER = f"{MARK} from fabric.yml; edit that, then run `gpufab render`.\n"


class _Dumper(yaml.SafeDumper):
    """Block style, but one line for a list of scalars and for each mapping in a list; None is left empty.

    PyYAML, because Ansible reads with it: what PyYAML writes is quoted where YAML 1.1 would take it for a number.
    """

    def ignore_aliases(self, data: Any) -> bool:  # noqa: ARG002 (PyYAML's signature)
        """Write equal things twice rather than by reference."""
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:  # noqa: ARG002
        """Indent lists below their key."""
        super().increase_indent(flow, False)


class _OneLine(dict[str, Any]):
    """A mapping written on one line."""


def _list(dumper: yaml.SafeDumper, data: list[Any]) -> yaml.Node:
    flow = all(isinstance(item, (int, str)) for item in data)
    items = [_OneLine(item) if isinstance(item, dict) else item for item in data]
    return dumper.represent_sequence("tag:yaml.org,2002:seq", items, flow_style=flow)


def _one_line(dumper: yaml.SafeDumper, data: _OneLine) -> yaml.Node:
    return dumper.represent_mapping("tag:yaml.org,2002:map", data, flow_style=True)


def _none(dumper: yaml.SafeDumper, _: None) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:null", "")


_Dumper.add_representer(_OneLine, _one_line)
_Dumper.add_representer(list, _list)
_Dumper.add_representer(type(None), _none)


def rendered(data: dict[str, Any]) -> str:
    """The text of a rendered file."""
    return HEADER + "---\n" + yaml.dump(data, Dumper=_Dumper, sort_keys=False, width=140, allow_unicode=True)
