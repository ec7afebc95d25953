"""Repositories of stand-ins are made once for the same sources, and whoever asks gets a copy of his own."""

import pytest

from tests.standins import kept


@pytest.fixture
def builds(monkeypatch):
    """The builds so far; a build leaves its number in a file."""
    monkeypatch.setattr(kept, "_digest", lambda: "aaaa")
    made = []

    def build(folder):
        made.append(folder)
        (folder / "keys").mkdir(parents=True)
        (folder / "keys" / "number").write_text(str(len(made)))

    build.made = made
    return build


def test_a_second_copy_is_of_the_first_build_whatever_became_of_the_first_copy(tmp_path, builds):
    kept.copy(tmp_path / "one", builds, tmp_path / "kept")
    (tmp_path / "one" / "keys" / "number").write_text("tampered with")
    kept.copy(tmp_path / "two", builds, tmp_path / "kept")
    assert (tmp_path / "two" / "keys" / "number").read_text() == "1"
    assert len(builds.made) == 1


def test_other_sources_are_built_anew_and_the_old_ones_go(tmp_path, builds, monkeypatch):
    kept.copy(tmp_path / "one", builds, tmp_path / "kept")
    monkeypatch.setattr(kept, "_digest", lambda: "bbbb")
    kept.copy(tmp_path / "two", builds, tmp_path / "kept")
    assert (tmp_path / "two" / "keys" / "number").read_text() == "2"
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {"bbbb", "lock"}


def test_a_build_that_was_cut_off_is_none(tmp_path, builds):
    def cut(folder):
        builds(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        kept.copy(tmp_path / "one", cut, tmp_path / "kept")
    assert not (tmp_path / "one").exists()
    kept.copy(tmp_path / "two", builds, tmp_path / "kept")
    assert (tmp_path / "two" / "keys" / "number").read_text() == "2"


def test_a_removal_that_was_cut_off_leaves_none(tmp_path, builds, monkeypatch):
    def cut(folder):
        (folder / "keys" / "number").unlink()
        raise KeyboardInterrupt

    kept.copy(tmp_path / "one", builds, tmp_path / "kept")
    with monkeypatch.context() as patch:
        patch.setattr(kept, "_digest", lambda: "bbbb")
        patch.setattr(kept.shutil, "rmtree", cut)
        with pytest.raises(KeyboardInterrupt):
            kept.copy(tmp_path / "two", builds, tmp_path / "kept")
    kept.copy(tmp_path / "three", builds, tmp_path / "kept")
    assert (tmp_path / "three" / "keys" / "number").read_text() == "2"
    assert {path.name for path in (tmp_path / "kept").iterdir()} == {"aaaa", "lock"}
