"""A build that was cut off is never taken for a whole one; what it is made from names it."""

import pytest

from tests.vm import cache


@pytest.fixture(autouse=True)
def _folder(monkeypatch, tmp_path):
    monkeypatch.setenv(cache.VARIABLE, str(tmp_path / "vm"))


def _fill(folder):
    (folder / "disk").write_text("whole")


def test_a_layer_is_built_once():
    built = []
    for _ in range(2):
        found = cache.layer("disk", "1", lambda folder: (_fill(folder), built.append(1)), str)
    assert ((found / "disk").read_text(), len(built)) == ("whole", 1)


def test_a_build_that_failed_leaves_nothing_that_is_taken():
    def cut_off(folder):
        _fill(folder)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cache.layer("disk", "1", cut_off, str)
    assert not (cache.root() / "disk-1").exists()
    found = cache.layer("disk", "1", lambda folder: (folder / "other").touch(), str)
    assert [path.name for path in found.iterdir()] == ["other"]


def test_what_is_mounted_is_not_removed(monkeypatch, tmp_path):
    half = tmp_path / "half"
    (half / "proc").mkdir(parents=True)
    mounts = tmp_path / "mounts"
    mounts.write_text(f"proc {half}/proc proc rw 0 0\n")
    monkeypatch.setattr(cache, "MOUNTS", mounts)
    with pytest.raises(RuntimeError, match="is mounted"):
        cache.remove(half)
    assert (half / "proc").is_dir()


def test_the_digest_knows_words_names_contents_and_modes(tmp_path):
    source = tmp_path / "source"
    source.mkdir()
    (source / "a").write_text("1")
    seen = {cache.digest("x", source), cache.digest("y", source)}
    (source / "a").write_text("2")
    seen.add(cache.digest("x", source))
    (source / "a").chmod(0o755)
    seen.add(cache.digest("x", source))
    (source / "a").rename(source / "b")
    seen.add(cache.digest("x", source))
    assert len(seen) == 5
