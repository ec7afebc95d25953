"""A lab of two nodes for all tests here; each test gives back the nodes as they were."""

import os

import pytest

from gpufab_cli.lab.errors import LabError
from gpufab_cli.lab.lab import Lab, require

NODES = ("gpu01", "gpu02")


@pytest.fixture(scope="session", autouse=True)
def _machine_has_a_lab():
    """Where it has none, developers may go without; CI may not."""
    try:
        require()
    except LabError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def nodes(tmp_path_factory):
    lab = Lab(tmp_path_factory.mktemp("lab") / ".lab")
    try:
        lab.up(NODES)
        yield lab
    finally:
        lab.down()


@pytest.fixture
def lab(nodes):
    yield nodes
    for name in NODES:
        nodes.repair(name)


@pytest.fixture
def sh(lab):
    """Runs a shell line as root on the first node and gives what it printed; it must end as told."""

    def run(line, rc=0, node="gpu01"):
        done = lab.run(node, f"sudo -n bash -c '{line}'")
        assert done.returncode == rc, done.stdout + done.stderr
        return done.stdout + done.stderr

    return run
