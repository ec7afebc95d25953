"""``gpufab init``: each kind of fabric starts with a file that is right."""

import re

import pytest

from gpufab_cli import cli
from gpufab_cli.errors import SpecErrors
from gpufab_cli.spec import source
from gpufab_cli.spec.load import validate
from gpufab_cli.spec.model import FabricSpec
from gpufab_cli.spec.templates import KINDS, template


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_validates(tmp_path, capfd, kind):
    directory = tmp_path / "new" / kind
    assert cli.run(["init", str(directory), "--kind", kind]) == 0
    out, err = capfd.readouterr()
    assert out == ""
    assert "gpufab validate -f" in err
    assert cli.run(["validate", "-f", str(directory / "fabric.yml")]) == 0


def test_a_file_that_is_there_stays(tmp_path, capfd):
    (tmp_path / "fabric.yml").write_text("mine")
    assert cli.run(["init", str(tmp_path)]) == 2
    assert (tmp_path / "fabric.yml").read_text() == "mine"
    assert capfd.readouterr().err.startswith(f"error: {tmp_path}/fabric.yml: already there\nhint: ")


def test_a_directory_that_cannot_be_made_is_one_line(tmp_path, capfd):
    (tmp_path / "file").touch()
    assert cli.run(["init", str(tmp_path / "file" / "below")]) == 2
    assert capfd.readouterr().err == f"error: {tmp_path}/file/below: Not a directory\n"


def uncommented(kind):
    """The template with every commented-out line of YAML in force; prose starts with a capital."""
    text = template(kind)
    return re.sub(r"(?m)^( *)# (?= *(?:- \{|[a-z][a-z_-]*:(?: |$)))", r"\1", text[text.index("---") :])


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_commented_out_is_right_too(kind):
    text = uncommented(kind)
    try:
        validate(source.parse(text, "f"), FabricSpec)
    except SpecErrors as errors:
        pytest.fail("\n".join([*errors.lines(), text]))
