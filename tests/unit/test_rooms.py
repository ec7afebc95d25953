"""Who may import whom: the table in docs/architecture.md.

The node core is carried to nodes: it must not reach beyond itself and the standard library.
"""

import ast
import functools
import sys

from tests.rooms import ROOT, Row, allowed, circles, room, rooms, sources, used
from tests.rooms import imports as named_imports


def imports(path):
    """(level, module) of every import in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or ""


def files(repository, folder):
    return sorted((repository / "gpufab_cli" / folder).rglob("*.py"))


def test_the_core_imports_itself_relatively_and_the_standard_library(repository):
    for path in files(repository, "module_utils"):
        depth = len(path.relative_to(repository / "gpufab_cli/module_utils").parts)
        for level, module in imports(path):
            if level:
                assert level <= depth, f"{path}: reaches out of the core"
            else:
                assert module.split(".")[0] in sys.stdlib_module_names, f"{path}: {module}"


def test_only_the_doors_run_programs(repository):
    for path in files(repository, "module_utils"):
        names = {
            name
            for node in ast.walk(ast.parse(path.read_text()))
            if isinstance(node, ast.Import | ast.ImportFrom)
            for name in (getattr(node, "module", None) or "", *(alias.name for alias in node.names))
        }
        if {"programs", "subprocess"} & names:
            assert path.name in ("host.py", "programs.py"), path


TABLE = allowed()


def test_the_table_has_a_row_for_each_room_and_no_other():
    assert set(TABLE) == rooms()


def test_a_room_imports_nothing_but_what_its_row_names():
    inside, outside = used()
    foreign = {
        f"{mine} imports {name}": sorted({f"{found.path.relative_to(ROOT)}: {found.name}" for found in where})
        for mine, row in TABLE.items()
        for imported, may in ((inside[mine], row.rooms), (outside[mine], row.others))
        for name, where in imported.items()
        if name not in may
    }
    assert not foreign


def test_the_table_names_rooms_that_there_are_and_lets_them_form_no_circle():
    edges = {name: row.rooms for name, row in TABLE.items()}
    assert set().union(*edges.values()) <= rooms()
    assert circles(edges) == []


LOCK = {f"gpufab_cli.spec.lock.{name}" for name in ("Lock", "LockedHost", "LockedPort", "LockedGpu", "load_lock")}
WRITERS = {"gpufab_cli/commands/lock.py", "gpufab_cli/commands/discover.py", "gpufab_cli/discover.py"}


def test_the_lock_is_read_where_the_fabric_is_resolved_and_by_those_who_write_it():
    readers = {
        (room(name), path.relative_to(ROOT).as_posix())
        for name, path in sources(ROOT)
        if LOCK & {found.name for found in named_imports(ROOT, path)}
    }
    assert ("fabric", "gpufab_cli/fabric/resolve.py") in readers
    assert not {path for where, path in readers if where not in ("fabric", "spec") and path not in WRITERS}


def small(root, files):
    for name, text in files.items():
        path = root / "gpufab_cli" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


def test_imports_count_wherever_they_stand(tmp_path):
    root = small(
        tmp_path,
        {
            "__init__.py": "",
            "__main__.py": "from gpufab_cli.one import x",
            "one/deep/here.py": "def f():\n    import json\n    from gpufab_cli.two import x\n    import yaml.nodes",
            "one/__init__.py": "from ..three import x\nfrom .deep import here",
            "two.py": "from gpufab_cli import three",
            "three.py": "if TYPE_CHECKING:\n    import gpufab_cli.one.deep.here",
        },
    )
    inside, outside = used(root)
    found = {mine: set(theirs) for mine, theirs in inside.items()}
    assert found == {"one": {"two", "three"}, "two": {"three"}, "three": {"one"}}
    assert set(outside["one"]) == {"yaml"}
    assert rooms(root) == {"one", "two", "three"}
    assert circles(found) == [frozenset({"one", "two", "three"})]


def test_a_row_names_rooms_and_packages(tmp_path):
    (tmp_path / "docs").mkdir()
    text = (
        "| room | what | may import | and of others |\n| `gpufab_cli/one/` | a `word` | `two`, `three` | |\n"
        "| `gpufab_cli/two.py` | b | | `yaml` |\n| `roles/` | c | | |\n"
    )
    (tmp_path / "docs/architecture.md").write_text(text)
    assert allowed(tmp_path) == {
        "one": Row(frozenset({"two", "three"}), frozenset()),
        "two": Row(frozenset(), frozenset({"yaml"})),
    }


@functools.cache
def named(path):
    """The files of the core that import statements name, wherever they stand, as Ansible's finder goes."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            folder = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            found |= {folder.with_suffix(".py"), *(folder / f"{alias.name}.py" for alias in node.names)}
    return {name for name in found if name.is_file()}


def reached(path):
    """These, and what they name in turn."""
    found, todo = set(), {path}
    while todo:
        todo = set().union(*map(named, todo)) - found
        found |= todo
    return found


def test_an_ansible_module_does_not_bring_a_node_the_other_features(repository):
    core = repository / "gpufab_cli/module_utils"
    everything = {core / name for name in ("archive.py", "features.py", "program.py", "restore.py")}
    assert core / "numa/feature.py" in reached(core / "features.py")
    modules = [path for path in files(repository, "modules") if path.name != "__init__.py"]
    assert core / "node/program.py" in reached(repository / "gpufab_cli/modules/node.py")
    for path in modules:
        assert not reached(path) & everything, path


def test_package_markers_of_the_core_are_empty(repository):
    """Ansible writes its own into the archives it sends; only empty ones are the same everywhere."""
    for path in (repository / "gpufab_cli/module_utils").rglob("__init__.py"):
        assert path.read_bytes() == b"", path


def test_ansible_modules_declare_check_mode(repository):
    modules = [path for path in files(repository, "modules") if path.name != "__init__.py"]
    assert modules
    for path in modules:
        assert "supports_check_mode=True" in path.read_text(), path
