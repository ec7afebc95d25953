"""What pip installs works away from the checkout: a wheel made from the sdist, as package indexes make it."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gpufab_cli.module_utils import archive

pytestmark = pytest.mark.process
BIN = Path(sys.executable).parent


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """A folder with nothing but the wheel's content, put before the checkout on sys.path."""
    repository = Path(__file__).resolve().parents[2]
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder / "dist", repository]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = (folder / "dist").glob("*.whl")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-deps",
        "--no-index",
        "--target",
        folder / "site",
        wheel,
    ]
    subprocess.run(pip, check=True, capture_output=True)
    return folder


def run(installed, *argv):
    environment = {**os.environ, "PYTHONPATH": str(installed / "site"), "PATH": f"{BIN}:{os.environ['PATH']}"}
    elsewhere = installed / "elsewhere"
    elsewhere.mkdir(exist_ok=True)
    return subprocess.run(argv, cwd=elsewhere, env=environment, capture_output=True, text=True, check=False)


def test_everything_behind_the_links_of_the_collection_is_there(installed, repository):
    collection = installed / "site/ansible_collections/gpufab/fabric"
    for link, folder in (
        ("plugins/action", "gpufab_cli/action"),
        ("plugins/modules", "gpufab_cli/modules"),
        ("plugins/module_utils", "gpufab_cli/module_utils"),
        ("roles", "roles"),
        ("playbooks", "playbooks"),
    ):
        wanted = {
            path.relative_to(repository / folder) for path in (repository / folder).rglob("*.*") if path.is_file()
        }
        wanted = {path for path in wanted if path.suffix in (".py", ".yml", ".md")}
        assert wanted
        missing = {path for path in wanted if not (collection / link / path).is_file()}
        assert missing == set()


def test_data_files_are_there(installed, repository):
    for path in (repository / "gpufab_cli").rglob("*.yml"):
        assert (installed / "site" / path.relative_to(repository)).is_file(), path


def test_ansible_finds_the_installed_collection_with_nothing_set(installed):
    done = run(installed, "ansible-doc", "-t", "module", "-j", "gpufab.fabric.roce")
    assert done.returncode == 0, done.stderr
    assert str(installed / "site") in done.stdout


def test_ansible_sends_the_program_that_an_audit_asks_for(installed):
    """Built from the collection's files by one, from pip's by the other."""
    code = (
        "import sys; from ansible.plugins.loader import action_loader, init_plugin_loader; init_plugin_loader([]);"
        "found = action_loader.get('gpufab.fabric.node', class_only=True);"
        "print(sys.modules[found.__module__].archive.digest())"
    )
    done = run(installed, sys.executable, "-c", code)
    assert done.stdout == f"{archive.digest()}\n", done.stderr


def test_the_site_playbook_and_an_example_parse(installed, repository):
    inventory = repository / "inventory/hgx-h100-roce/inventory"
    done = run(installed, "ansible-playbook", "-i", inventory, "--syntax-check", "gpufab.fabric.site")
    assert done.returncode == 0, done.stderr


def test_the_command_line_runs(installed, repository):
    fabric = repository / "inventory/hgx-h100-roce/fabric.yml"
    done = run(installed, sys.executable, "-m", "gpufab_cli", "validate", "-f", fabric)
    assert done.returncode == 0, done.stderr
    assert run(installed, sys.executable, "-m", "gpufab_cli", "explain", "roce.pfc").returncode == 0
