"""Who may import whom. The node core is carried to nodes: it must not reach beyond itself and the standard library."""

import ast
import functools
import sys

import pytest


def imports(path):
    """(level, module) of every import in a file."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from ((0, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.level, node.module or ""


def files(repository, folder):
    return sorted((repository / "gpufab_cli" / folder).rglob("*.py"))


def absolute(repository, path, level, module):
    if not level:
        return module
    parts = path.relative_to(repository).with_suffix("").parts[:-level]
    return ".".join([*parts, *([module] if module else [])])


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


@pytest.mark.parametrize(
    ("folder", "forbidden"),
    [
        ("lab", ("gpufab_cli.module_utils", "gpufab_cli.spec", "gpufab_cli.audit", "gpufab_cli.execute")),
        ("spec", ("gpufab_cli.audit", "gpufab_cli.execute.ansible", "gpufab_cli.render", "gpufab_cli.lab")),
        ("intent", ("gpufab_cli.audit", "gpufab_cli.render", "gpufab_cli.lab", "jinja2")),
        ("audit", ("gpufab_cli.lab", "ansible_runner", "jinja2")),
        ("execute", ("gpufab_cli.lab", "jinja2")),
        ("action", ("gpufab_cli.spec", "gpufab_cli.intent", "gpufab_cli.audit", "gpufab_cli.execute")),
        ("verify", ("gpufab_cli.module_utils",)),
    ],
)
def test_layers(repository, folder, forbidden):
    for path in files(repository, folder):
        for level, module in imports(path):
            name = absolute(repository, path, level, module)
            assert not any(name == bad or name.startswith(bad + ".") for bad in forbidden), f"{path}: {name}"


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
