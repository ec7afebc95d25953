"""The rooms of gpufab_cli: which imports which by its sources, and which may by the table in docs/architecture.md.

A room is an entry below ``gpufab_cli/``: a folder or a single module. Imports count wherever they stand, also inside
functions and below ``TYPE_CHECKING``.
"""

import ast
import re
import sys
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "gpufab_cli"
ROOT = Path(__file__).parents[1]
_ROW = re.compile(r"\| `gpufab_cli/([\w.]+?)/?` \|[^|]*\|([^|]*)\|([^|]*)\|")
_NAME = re.compile(r"`([\w.]+)`")


@dataclass(frozen=True)
class Import:
    """One import: the file where it stands, and the whole name of what it takes."""

    path: Path
    name: str


@dataclass(frozen=True)
class Row:
    """What the table lets a room import: other rooms, and packages of others."""

    rooms: frozenset[str]
    others: frozenset[str]


def sources(root, package=PACKAGE):
    """Each module of a package by its whole name, without the compiled and the data."""
    for path in sorted((root / package.replace(".", "/")).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def imports(root, path):
    """Every import in a file, relative ones by their whole name."""
    here = path.relative_to(root).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (Import(path, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            start = here[: len(here) - node.level] if node.level else ()
            base = ".".join([*start, *([node.module] if node.module else [])])
            yield from (Import(path, f"{base}.{alias.name}") for alias in node.names)


def room(name):
    """The room of a module of gpufab; the package's own ``__init__`` and ``__main__`` are none."""
    head, _, rest = name.partition(".")
    found = rest.partition(".")[0]
    return found if head == PACKAGE and found and not found.startswith("__") else None


def rooms(root=ROOT):
    """All rooms that there are."""
    return {room(name) for name, _ in sources(root)} - {None}


def used(root=ROOT):
    """Room → what it imports of other rooms, with where; and room → the same of others' packages."""
    inside, outside = defaultdict(lambda: defaultdict(list)), defaultdict(lambda: defaultdict(list))
    for name, path in sources(root):
        mine = room(name)
        if mine is None:
            continue
        for found in imports(root, path):
            head = found.name.partition(".")[0]
            theirs = room(found.name)
            if theirs is not None and theirs != mine:
                inside[mine][theirs].append(found)
            elif head != PACKAGE and head not in sys.stdlib_module_names:
                outside[mine][head].append(found)
    return inside, outside


def allowed(root=ROOT):
    """Room → its row in the table."""
    text = (root / "docs/architecture.md").read_text(encoding="utf-8")
    return {
        match[1].removesuffix(".py"): Row(frozenset(_NAME.findall(match[2])), frozenset(_NAME.findall(match[3])))
        for match in map(_ROW.match, text.splitlines())
        if match
    }


def circles(edges):
    """The rooms that reach themselves, as sets of those that reach one another. ``edges``: room → rooms it imports."""
    reach = {start: _reached(start, edges) for start in edges}
    groups = {frozenset(b for b in found if a in reach.get(b, ())) for a, found in reach.items() if a in found}
    return sorted(groups, key=sorted)


def _reached(start, edges):
    found, todo = set(), set(edges.get(start, ()))
    while todo:
        found |= todo
        todo = {far for near in todo for far in edges.get(near, ())} - found
    return found
