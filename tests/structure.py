"""Numbers of how gpufab is built: ``python -m tests.structure [ROOT]`` prints them, for this checkout or another."""

import ast
import sys
from collections import defaultdict
from pathlib import Path

from tests.rooms import PACKAGE, ROOT, allowed, circles, imports, rooms, sources, used

CORE = f"{PACKAGE}.module_utils"


def classes(root):
    """Public class names that two or more modules define, and which these are."""
    found = defaultdict(set)
    for name, path in sources(root):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                found[node.name].add(name)
    return {name: modules for name, modules in sorted(found.items()) if len(modules) > 1}


def core_entries(root):
    """What lies at the root of the node core: modules and folders, its ``__init__`` aside."""
    folder = root / CORE.replace(".", "/")
    return sorted(path.stem for path in folder.iterdir() if path.stem != "__pycache__" and path.name != "__init__.py")


def core_edges(root):
    """The folders of the node core, and which of the others each imports."""
    folders = {path.name for path in (root / CORE.replace(".", "/")).iterdir() if (path / "__init__.py").exists()}
    found = {name: set() for name in folders}
    for name in folders:
        for _, path in sources(root, f"{CORE}.{name}"):
            for item in imports(root, path):
                other = item.name.removeprefix(f"{CORE}.").partition(".")[0]
                if item.name.startswith(f"{CORE}.") and other in folders - {name}:
                    found[name].add(other)
    return found


def pairs(edges):
    """Rooms that import each other."""
    return sorted((a, b) for a, found in edges.items() for b in found if a < b and a in edges.get(b, ()))


def report(root):
    """Each number, and what it is made of."""
    inside, _ = used(root)
    mutual = [*pairs(inside), *pairs(core_edges(root))]
    rings = [*circles(inside), *circles(core_edges(root))]
    ruled = sorted(rooms(root) & set(allowed(root)))
    double = classes(root)
    yield "rooms of gpufab_cli", len(rooms(root)), ", ".join(sorted(rooms(root)))
    yield "rooms that import each other", len(mutual), ", ".join(f"{a} and {b}" for a, b in mutual)
    yield "circles of rooms", len(rings), "; ".join(", ".join(sorted(ring)) for ring in rings)
    yield "entries at the root of module_utils", len(core_entries(root)), ""
    yield "rooms with a row in docs/architecture.md", len(ruled), ", ".join(ruled)
    yield "public class names in two or more modules", len(double), ", ".join(double)


def main(arguments):
    """Print the numbers of a checkout."""
    for what, number, names in report(Path(arguments[0]).resolve() if arguments else ROOT):
        sys.stdout.write(f"{number:4} {what}{f': {names}' if names else ''}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
