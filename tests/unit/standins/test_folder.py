"""Which folder repositories of stand-ins are made in: never one that holds anything else."""

import pytest

from tests.standins import __main__ as program


@pytest.fixture
def built(monkeypatch):
    """The folders that were filled."""
    found = []
    monkeypatch.setattr(program, "provide", found.append)
    return found


@pytest.mark.parametrize("name", ["site.yml", "doca2"])
def test_what_is_somebody_else_s_stays(tmp_path, built, capsys, name):
    (tmp_path / "doca").mkdir()
    (tmp_path / name).touch()
    with pytest.raises(SystemExit):
        program.main([str(tmp_path)])
    assert (tmp_path / name).exists()
    assert built == []
    assert "holds other things than stand-ins" in capsys.readouterr().err


def test_an_earlier_run_s_repositories_go(tmp_path, built):
    folder = tmp_path / "repositories"
    program.main([str(folder)])
    (folder / "doca" / "3.2.0").mkdir(parents=True)
    program.main([str(folder)])
    assert built == [folder, folder]
    assert not folder.exists()


def test_a_word_that_is_no_folder_makes_none(built, capsys):
    with pytest.raises(SystemExit):
        program.main(["--help"])
    assert built == []
    assert "FOLDER" in capsys.readouterr().out
