"""The scripts that make calls, with false programs."""

import os
import shutil
import subprocess

import pytest

pytestmark = pytest.mark.process

MOLECULE = """\
#!/bin/sh
[ ! -e "$MOLECULE_EPHEMERAL_DIRECTORY/state.yml" ] || exit 1
mkdir -p "$MOLECULE_EPHEMERAL_DIRECTORY"
echo "created: true" >"$MOLECULE_EPHEMERAL_DIRECTORY/state.yml"
"""
"""As molecule, it creates nodes once and leaves that out the next time; it is killed before it has destroyed them."""


@pytest.mark.parametrize("scenarios", [["one"], ["one", "two"]])
def test_a_molecule_run_that_was_killed_costs_the_next_no_create(tmp_path, repository, scenarios):
    molecule = tmp_path / "bin" / "molecule"
    for path in (molecule, tmp_path / "scripts" / "molecule"):
        path.parent.mkdir()
    shutil.copy(repository / "scripts" / "molecule", tmp_path / "scripts")
    molecule.write_text(MOLECULE)
    molecule.chmod(0o755)
    env = {**os.environ, "PATH": f"{molecule.parent}:{os.environ['PATH']}"}
    for _ in range(2):
        done = subprocess.run(
            [tmp_path / "scripts" / "molecule", *scenarios], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    kept = sorted(path.relative_to(tmp_path) for path in tmp_path.rglob("state.yml"))
    assert [str(path) for path in kept] == [f".lab/molecule/{name}/state/state.yml" for name in scenarios]


PYTHON = """\
#!/bin/sh
case $1$2 in
    -mvenv) mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && ln -sf /bin/true "$3/bin/pip" ;;
    "-cimport sysconfig"*) echo "${0%/bin/*}" ;;
esac
"""
"""Makes an environment that has a pip."""


def test_a_virtual_environment_that_was_cut_off_is_made_anew(tmp_path, repository):
    python, venv = tmp_path / "python", tmp_path / "venv"
    python.write_text(PYTHON)
    python.chmod(0o755)
    (venv / "bin").mkdir(parents=True)
    shutil.copy(python, venv / "bin")  # python is there before pip is
    subprocess.run([repository / "scripts" / "venv", python, venv], check=True)
    assert (venv / "bin" / "pip").exists()
    assert (venv / "collect_garbage_later.pth").exists()
