"""What every output keeps to, and which of them a fabric's files are rendered by."""

from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import get_args

import pytest

from gpufab_cli.compile.fabric import load_whole
from gpufab_cli.errors import GpufabError
from gpufab_cli.outputs.files import write
from gpufab_cli.outputs.registry import OUTPUTS
from gpufab_cli.outputs.render import inventory_changes, rendered
from gpufab_cli.spec.load import load
from gpufab_cli.spec.outputs import OutputName
from tests.golden.cases import RENDER, names


def texts(output, case):
    whole = load_whole(RENDER / case / "fabric.yml")
    return output.render(whole.resolved, whole.wants)


def test_the_spec_names_the_outputs_that_there_are():
    assert tuple(OUTPUTS) == get_args(OutputName)
    assert all(output.name == name for name, output in OUTPUTS.items())


def test_no_output_writes_below_anothers_folder():
    folders = [PurePosixPath(output.folder) for output in OUTPUTS.values()]
    assert not any(a.is_absolute() or ".." in a.parts for a in folders)
    assert not any(a.is_relative_to(b) for a in folders for b in folders if a is not b)


@pytest.mark.parametrize("case", names(RENDER))
@pytest.mark.parametrize("name", OUTPUTS)
def test_an_output_gives_files_of_its_own_the_same_each_time(name, case):
    files = texts(OUTPUTS[name], case)
    assert files
    assert list(files.items()) == list(texts(OUTPUTS[name], case).items())
    for path, text in files.items():
        assert ".." not in PurePosixPath(path).parts
        assert not PurePosixPath(path).is_absolute()
        assert text.startswith(OUTPUTS[name].header)
        assert text.endswith("\n")


@dataclass(frozen=True)
class Other:
    """An output that no fabric names."""

    name: str = "other"
    folder: str = "other"
    header: str = "! gpufab"

    def render(self, spec, wants):
        return {f"{host}.txt": f"{self.header}\n" for host in wants}


def test_files_of_an_output_that_is_not_named_any_more_go_and_the_sites_own_stay(tmp_path, monkeypatch):
    monkeypatch.setitem(OUTPUTS, "other", Other())
    for name in ("fabric.yml", "fabric.lock.yml"):
        (tmp_path / name).write_text((RENDER / "usual" / name).read_text())
    fabric = tmp_path / "fabric.yml"
    write(tmp_path, rendered(fabric).changes)
    assert (tmp_path / "inventory/hosts.yml").exists()
    assert not (tmp_path / "other").exists()
    (tmp_path / "other").mkdir()
    (tmp_path / "other/stale.txt").write_text("! gpufab\n")
    (tmp_path / "other/mine.txt").write_text("mine\n")
    assert [change.path for change in rendered(fabric).changes] == [tmp_path / "other/stale.txt"]
    write(tmp_path, rendered(fabric).changes)
    assert [path.name for path in (tmp_path / "other").iterdir()] == ["mine.txt"]
    (tmp_path / "other/mine.txt").unlink()
    (tmp_path / "other/stale.txt").write_text("! gpufab\n")
    write(tmp_path, rendered(fabric).changes)
    assert not (tmp_path / "other").exists()


@pytest.fixture
def fabric(tmp_path, monkeypatch):
    """A fabric.yml whose outputs the test chooses, of which the spec need not know all."""

    def make(*outputs):
        case = RENDER / "usual"
        spec = load(case / "fabric.yml").model_copy(update={"outputs": outputs})
        monkeypatch.setattr("gpufab_cli.fabric.resolve.load", lambda _: spec)
        (tmp_path / "fabric.lock.yml").write_text((case / "fabric.lock.yml").read_text())
        return tmp_path / "fabric.yml"

    monkeypatch.setitem(OUTPUTS, "other", Other())
    return make


def folders(changed, fabric):
    return {change.path.relative_to(fabric.parent).parts[0] for change in changed}


def test_every_output_that_a_fabric_names_is_rendered(fabric):
    path = fabric("ansible", "other")
    assert folders(rendered(path).changes, path) == {"inventory", "other"}


def test_an_apply_looks_at_the_inventory_alone_and_refuses_a_fabric_without(fabric):
    path = fabric("ansible", "other")
    assert folders(inventory_changes(load_whole(path)), path) == {"inventory"}
    with pytest.raises(GpufabError, match="outputs: does not name ansible"):
        inventory_changes(load_whole(fabric("other")))
