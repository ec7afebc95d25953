"""What an image is made from, and its name. Nothing is built here."""

import shutil

import pytest

from gpufab_cli.lab import image, platforms, podman
from gpufab_cli.lab.errors import LabError

_KNOWN = "Debian http://mirror.invalid/debian/\nDebian-Security http://mirror.invalid/security/\n"


@pytest.fixture
def sources(tmp_path, monkeypatch):
    """A copy of the images' sources that a test may change."""
    copy = tmp_path / "image"
    shutil.copytree(image._HERE, copy, symlinks=True)
    monkeypatch.setattr(image, "_HERE", copy)
    return copy


def test_every_platform_has_an_image_of_its_own():
    assert len({image.tag(name) for name in platforms.names()}) == len(platforms.names())
    with pytest.raises(LabError, match="no platform") as raised:
        image.tag("plan9")
    assert "rocky9" in raised.value.hint


def test_a_look_alike_changes_with_its_own_files_and_with_its_base(sources):
    before = {name: image.tag(name) for name in platforms.names()}
    (sources / "rocky9" / "Containerfile").write_text("FROM scratch\n")
    changed = {name for name in before if image.tag(name) != before[name]}
    assert changed == {"rocky9"}
    (sources / "rootfs" / "etc" / "issue").write_text("x\n")
    assert all(image.tag(name) != before[name] for name in before)


def test_look_alikes_say_so():
    look_alikes = {name: folder for name in platforms.names() if (folder := platforms.load(name).folder) == name}
    assert look_alikes.keys() == {"rocky9", "ubuntu2404"}
    for folder in look_alikes.values():
        said = (image._HERE / folder / "rootfs" / "usr" / "lib" / "os-release").read_text()
        assert "look-alike" in next(line for line in said.splitlines() if line.startswith("PRETTY_NAME="))


def test_packages_come_from_this_machines_own_mirrors(monkeypatch):
    monkeypatch.setattr(image, "run", lambda _: _KNOWN)
    main, updates, security = image.archive("trixie")
    assert main == "deb http://mirror.invalid/debian/ trixie main contrib"
    assert " trixie-updates " in updates
    assert security == "deb http://mirror.invalid/security/ trixie-security main contrib"


def test_without_apt_mmdebstrap_chooses(monkeypatch):
    def absent(_):
        raise LabError("apt-get is not installed")

    monkeypatch.setattr(image, "run", absent)
    assert image.archive("trixie") == []


def test_an_image_that_exists_is_not_built_again(monkeypatch):
    monkeypatch.setattr(podman, "has_image", lambda _: True)
    said = []
    assert image.ensure(said.append, "rocky9") == image.tag("rocky9")
    assert said == []


def test_a_look_alike_brings_its_base(monkeypatch, tmp_path):
    made = []
    monkeypatch.setattr(image, "RUN", tmp_path)
    monkeypatch.setattr(podman, "has_image", made.__contains__)
    monkeypatch.setattr(podman, "import_image", lambda _, tag: made.append(tag))
    monkeypatch.setattr(podman, "build_image", lambda _, base, tag, timeout: made.append(tag))
    monkeypatch.setattr(image, "run", lambda *_, **__: "")
    image.ensure(lambda _: None, "ubuntu2404")
    assert made == [image.tag("debian12"), image.tag("ubuntu2404")]
