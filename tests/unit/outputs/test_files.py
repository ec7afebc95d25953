"""Only what gpufab wrote is ever touched."""

import pytest

from gpufab_cli.errors import SpecErrors
from gpufab_cli.outputs.files import compare, write

MARK = "# Rendered by a test"
OURS = f"{MARK}\na: 1\n"
NEW = f"{MARK}\na: 2\n"


def put(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def render(root, files):
    changes = compare(root, files, MARK)
    write(root, changes)
    return changes


def tree(root):
    return {path.relative_to(root).as_posix(): path.read_text() for path in root.rglob("*") if path.is_file()}


def test_a_fresh_directory_is_made_and_then_nothing_changes(tmp_path):
    root = tmp_path / "inventory"
    files = {"hosts.yml": OURS, "host_vars/a/gpufab.yml": OURS}
    assert len(render(root, files)) == 2
    assert tree(root) == files
    assert render(root, files) == ()


def test_a_changed_file_is_replaced_and_its_diff_is_shown(tmp_path):
    put(tmp_path, {"hosts.yml": OURS})
    (change,) = render(tmp_path, {"hosts.yml": NEW})
    assert (
        "".join(change.diff(tmp_path)) == f"--- a/hosts.yml\n+++ b/hosts.yml\n@@ -1,2 +1,2 @@\n {MARK}\n-a: 1\n+a: 2\n"
    )
    assert tree(tmp_path) == {"hosts.yml": NEW}


def test_stale_files_go_and_their_directories_with_them(tmp_path):
    put(tmp_path, {"hosts.yml": OURS, "host_vars/gone/gpufab.yml": OURS, "host_vars/kept/gpufab.yml": OURS})
    put(tmp_path, {"host_vars/kept/site.yml": "mine: 1\n"})
    render(tmp_path, {"hosts.yml": OURS})
    assert tree(tmp_path) == {"hosts.yml": OURS, "host_vars/kept/site.yml": "mine: 1\n"}
    assert not (tmp_path / "host_vars" / "gone").exists()


def test_files_of_the_site_are_left_alone(tmp_path):
    site = {"group_vars/all/site.yml": "x: 1\n", "group_vars/gpufab/zz.yml": "y: 1\n", "notes.bin": "\x00"}
    put(tmp_path, site)
    render(tmp_path, {"group_vars/gpufab/gpufab.yml": OURS})
    assert tree(tmp_path) == site | {"group_vars/gpufab/gpufab.yml": OURS}


@pytest.mark.parametrize("content", ["mine: 1\n", "", f"---\n{MARK}\n"])
def test_a_foreign_file_in_the_way_is_not_overwritten(tmp_path, content):
    put(tmp_path, {"hosts.yml": content})
    with pytest.raises(SpecErrors, match=r"hosts\.yml: not written by gpufab"):
        compare(tmp_path, {"hosts.yml": OURS, "other.yml": OURS}, MARK)
    assert tree(tmp_path) == {"hosts.yml": content}


def test_a_link_is_neither_followed_nor_replaced(tmp_path):
    elsewhere = tmp_path / "elsewhere.yml"
    elsewhere.write_text(OURS)
    root = tmp_path / "inventory"
    root.mkdir()
    (root / "hosts.yml").symlink_to(elsewhere)
    with pytest.raises(SpecErrors):
        compare(root, {"hosts.yml": NEW}, MARK)
    (root / "hosts.yml").rename(root / "stale.yml")
    render(root, {"hosts.yml": NEW})
    assert elsewhere.read_text() == OURS
    assert (root / "stale.yml").is_symlink()


def test_a_write_that_fails_leaves_no_rest(tmp_path, monkeypatch):
    from pathlib import Path

    from gpufab_cli.errors import GpufabError

    put(tmp_path, {"hosts.yml": OURS})

    def refuse(self, target):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", refuse)
    with pytest.raises(GpufabError, match=r"hosts\.yml: No space left on device"):
        render(tmp_path, {"hosts.yml": NEW})
    assert tree(tmp_path) == {"hosts.yml": OURS}


@pytest.mark.parametrize("link", ["group_vars", "group_vars/all"])
def test_nothing_is_written_through_a_link(tmp_path, link):
    root, elsewhere = tmp_path / "inventory", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (root / link).parent.mkdir(parents=True)
    (root / link).symlink_to(elsewhere)
    with pytest.raises(SpecErrors, match=f"inventory/{link}: a link to {elsewhere}, and nothing is written"):
        render(root, {"hosts.yml": OURS, "group_vars/all/gpufab.yml": OURS})
    assert list(elsewhere.iterdir()) == []
    assert not (root / "hosts.yml").exists()
