"""A site's directory with the small fabric, locked; nodes in memory; and one way to run a command."""

import pytest

from gpufab_cli.spec.lock import FILE_NAME, dump
from tests import fabrics
from tests.cli.nodes import Nodes


@pytest.fixture
def site(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fabric.yml").write_text(fabrics.SMALL)
    (tmp_path / FILE_NAME).write_text(dump(fabrics.lock()))
    return tmp_path


@pytest.fixture
def nodes():
    return Nodes()


@pytest.fixture
def gpufab_on(site, nodes, capfd):
    """Run a command against the nodes: its exit code, stdout without trailing blanks, stderr."""

    def run(*arguments):
        code = nodes.run(*arguments)
        out, err = capfd.readouterr()
        return code, "".join(f"{line.rstrip()}\n" for line in out.splitlines()), err

    return run
