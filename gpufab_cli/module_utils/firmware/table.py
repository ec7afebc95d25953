"""The table that ``mlxconfig query`` prints, whichever release: widths have changed three times.

Grammar: mstflint mlxconfig/mlxcfg_ui.cpp. A row is ``*`` where next differs, ``RO`` where read-only, a name, and one
value for each column that the header names. No value holds a space. Default and Current come only with ``-e``.
"""

import re
from typing import Dict, List, Optional

from ..change import Unknown
from .seen import Cell, Parameter

HEADER = re.compile(r"^Configurations:\s+(?P<columns>\S.*?)\s*$")
COLUMNS = re.compile(r"Default|Current|Next Boot|New")
NAME = re.compile(r"[A-Z][A-Z0-9_]*(?:\[\d+\])?$")
ONLY_NEXT = Unknown("this release of the firmware tool prints the next boot only")


def parse(text: str) -> Optional[Dict[str, Parameter]]:
    """Every parameter by name; None when there is no table that a known release prints, or nothing in it."""
    columns: List[str] = []
    found: Dict[str, Parameter] = {}
    for line in text.splitlines():
        header = HEADER.match(line)
        if header:
            columns = COLUMNS.findall(header.group("columns"))
            continue
        words = line.replace("*", " ", 1).split() if columns else []
        words = words[1:] if words[:1] == ["RO"] else words
        if len(words) == 1 + len(columns) and NAME.match(words[0]):
            found[words[0]] = _parameter(dict(zip(columns, words[1:])))
    return found if found and "Next Boot" in columns else None


def _parameter(row: Dict[str, str]) -> Parameter:
    def cell(column: str) -> Cell:
        return row.get(column, ONLY_NEXT)

    return Parameter(cell("Default"), cell("Current"), cell("Next Boot"))


def same(cell: Cell, wish: str) -> bool:
    """Whether a printed value is the wished one: by its name, or by its number in any notation."""
    if isinstance(cell, Unknown):
        return False
    name, _, number = cell.partition("(")
    names = {name.lower(), name.lower().lstrip("_")}
    number = number.rstrip(")") or name
    return wish.lower() in names or (_number(number) is not None and _number(number) == _number(wish))


def argument(value: str) -> str:
    """A value as ``mlxconfig set`` takes it: the number of what is printed as NAME(number)."""
    match = re.fullmatch(r".*\((\d+)\)", value)
    return match.group(1) if match else value


def _number(text: str) -> Optional[int]:
    try:
        return int(text, 0) if text.lower().startswith("0x") else int(text)
    except ValueError:
        return {"true": 1, "false": 0}.get(text.lower())
