"""fabric.yml and its lock → the whole inventory, to the letter."""

import difflib

import pytest

from gpufab_cli.outputs.render import rendered
from tests.golden.cases import EXAMPLES, RENDER, inventory_of, names


def expected(case):
    root = case / "inventory"
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()}


def diff(wanted, found):
    for path in sorted({*wanted, *found}):
        before, after = (files.get(path, "").splitlines() for files in (wanted, found))
        yield from difflib.unified_diff(before, after, f"expected/{path}", f"rendered/{path}", lineterm="")


@pytest.mark.parametrize("name", names(RENDER))
def test_an_inventory_is_rendered_to_the_letter(name):
    lines = list(diff(expected(RENDER / name), inventory_of(RENDER / name)))
    assert not lines, "\n".join(lines)


@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_is_as_rendered(repository, name):
    fabric = repository / "inventory" / name / "fabric.yml"
    lines = [line for change in rendered(fabric).changes for line in change.diff(fabric.parent)]
    assert not lines, "".join(lines)
