"""Snapshots that were saved are judged as if they had just come in."""

import json
import stat

import pytest

from gpufab_cli.audit import saved
from gpufab_cli.audit.audit import audit
from gpufab_cli.audit.collect import Collected, Failed, Failure
from gpufab_cli.errors import GpufabError
from tests.snapshots import HOSTS, WANTS, in_sync

FOUND = (
    Collected("gpu01", in_sync("gpu01", ports={0: {"pfc": ()}}), "sudo: a password is required"),
    Collected("gpu02", Failure(Failed.UNREACHABLE, "no route", "look at the cable")),
    Collected("gpu03", in_sync("gpu03")),
)


@pytest.fixture
def folder(tmp_path):
    assert tuple(saved.save(FOUND, tmp_path / "then")) == FOUND
    return tmp_path / "then"


def load(folder):
    return tuple(saved.load(folder, HOSTS))


def test_what_comes_back_is_what_was_saved(folder):
    assert load(folder) == FOUND


def test_judged_later_the_fabric_reads_as_it_did(folder):
    assert audit(load(folder), WANTS) == audit(FOUND, WANTS)


def test_nobody_else_may_read_the_files(folder):
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()} == {0o600}
    assert sorted(path.name for path in folder.iterdir()) == ["gpu01.json", "gpu02.json", "gpu03.json"]


def test_saving_again_replaces_a_file_and_its_mode(folder):
    (folder / "gpu02.json").chmod(0o644)
    tuple(saved.save((Collected("gpu02", in_sync("gpu02")),), folder))
    assert stat.S_IMODE((folder / "gpu02.json").stat().st_mode) == 0o600
    assert load(folder)[1] == Collected("gpu02", in_sync("gpu02"))


def test_a_host_without_a_file_is_missing(folder):
    (folder / "gpu03.json").unlink()
    assert load(folder)[2].result.kind is Failed.MISSING


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "Expecting"),
        ("[]", "not of format 1"),
        ('{"format": 2}', "not of format 1"),
        ('{"format": 1, "host": "gpu01"}', "snapshot"),
        ('{"format": 1, "host": "gpu01", "no_root": "", "snapshot": {"format": 99}}', "not of format"),
        ('{"format": 1, "failure": {"kind": "bored", "message": ""}}', "bored"),
    ],
)
def test_a_damaged_file_is_garbage_of_its_host_alone(folder, text, words):
    (folder / "gpu01.json").write_text(text)
    first, *rest = load(folder)
    assert first.result.kind is Failed.GARBAGE
    assert words in first.result.message
    assert tuple(rest) == FOUND[1:]


def test_an_empty_directory_is_a_mistake(tmp_path):
    with pytest.raises(GpufabError, match="no saved snapshots"):
        load(tmp_path)


def test_a_directory_that_cannot_be_made(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(GpufabError, match="file"):
        tuple(saved.save(FOUND, tmp_path / "file" / "then"))


def test_the_format_is_a_contract(folder):
    data = json.loads((folder / "gpu02.json").read_text())
    failure = {"kind": "unreachable", "message": "no route", "hint": "look at the cable"}
    assert data == {"format": 1, "host": "gpu02", "no_root": "", "failure": failure}
