"""The command line from outside: what is printed where, and the exit codes."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpufab_cli import cli
from gpufab_cli.errors import Exit, GpufabError
from gpufab_cli.spec.lock import dump
from tests.fabrics import SMALL, lock


@pytest.fixture
def fabric(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "fabric.yml").write_text(SMALL)
    (tmp_path / "fabric.lock.yml").write_text(dump(lock()))
    return tmp_path


@pytest.fixture
def gpufab(capfd):
    def run(*arguments):
        code = cli.run(list(arguments))
        out, err = capfd.readouterr()
        return code, out, err

    return run


def test_help_lists_every_command_and_imports_none():
    script = (
        "import sys; sys.argv = ['gpufab', '--help']\n"
        "from gpufab_cli.cli import main\n"
        "try: main()\n"
        "finally:\n"
        "  heavy = {'pydantic', 'rich', 'ansible', 'paramiko', 'yaml', 'jinja2'} & set(sys.modules)\n"
        "  print('heavy', heavy, file=sys.stderr)\n"
    )
    result = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert result.returncode == 0
    assert result.stderr == "heavy set()\n"
    for name in ("completion", "render", "validate"):
        assert f"  {name} " in result.stdout


def test_verify_starts_without_paramiko_and_that_without_invoke():
    script = (
        "import sys\n"
        "import gpufab_cli.verify.expected\n"
        "assert not {'rich', 'paramiko', 'ansible_runner'} & set(sys.modules)\n"
        "import gpufab_cli.reach.connections\n"
        "assert 'paramiko' in sys.modules and 'invoke' not in sys.modules\n"
        "import invoke\n"
    )
    subprocess.run([sys.executable, "-c", script], check=True)


def test_every_command_has_help_with_examples(gpufab):
    for name in cli.summaries():
        code, out, _ = gpufab(name, "--help")
        assert code == 0, name
        if f"{name} [OPTIONS] COMMAND" not in out:
            assert "Examples:\n" in out, name
        assert cli.summaries()[name].split()[0] in out, name


def test_version(gpufab):
    assert gpufab("--version")[:2] == (0, "gpufab, version 0.1.0\n")


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["valdate"], "error: no command 'valdate'\nhint: did you mean validate?\n"),
        (["validate", "--fabrik", "x"], "error: No such option '--fabrik'. Did you mean '--fabric'?\n"),
        (["validate", "extra"], "error: Got unexpected extra argument (extra)\n"),
        (["validate", "-f", "none.yml"], "error: none.yml: No such file or directory\nhint: name the file with -f"),
        (["validate", "-f", "."], "error: .: a directory, not a regular file\n"),
    ],
)
def test_usage_errors_are_one_line_and_a_hint(gpufab, arguments, told):
    code, out, err = gpufab(*arguments)
    assert (code, out) == (Exit.USAGE, "")
    assert err.startswith(told)
    assert len(err.splitlines()) == 1 + err.count("\nhint: ")


def test_validate_tells_what_the_fabric_says(fabric, gpufab):
    code, out, err = gpufab("validate")
    assert (code, err) == (0, "")
    assert "small: 3 active; 3 of 3 active hosts locked" in out
    assert "106" in out


def test_validate_as_json(fabric, gpufab):
    _, out, _ = gpufab("validate", "--format", "json")
    found = json.loads(out)
    assert found["hosts"] == {"active": 3, "maintenance": 0, "absent": 0}
    assert found["qos"][0]["classes"][0] == {
        "class": "lossless",
        "priority": 3,
        "dscp": [26],
        "tos": [106],
        "share": 60,
    }


def test_validate_prints_all_errors_and_nothing_else(fabric, gpufab):
    (fabric / "fabric.yml").write_text(SMALL.replace("mtu: 9000", "mtu: 1").replace("{3: 60", "{3: 10"))
    code, out, err = gpufab("validate")
    assert (code, out) == (Exit.USAGE, "")
    assert err == (
        "error: fabric.yml:3: networks.compute.mtu: 1 is not in 576..9978\n"
        "error: fabric.yml:9: qos.dcqcn.ets: sums to 50, must be 100\n"
    )


def test_validate_reads_the_lock_too(fabric, gpufab):
    (fabric / "fabric.lock.yml").write_text("hosts: {gpu01: {port: {}}}\n")
    code, _, err = gpufab("validate")
    assert code == Exit.USAGE
    assert err == "error: fabric.lock.yml:1: hosts.gpu01.port: unknown key\nhint: did you mean ports?\n"


def test_render_writes_checks_and_finds_itself_up_to_date(fabric, gpufab):
    assert gpufab("render", "--check")[0] == Exit.DRIFT
    assert not (fabric / "inventory").exists()
    code, out, err = gpufab("render")
    assert (code, out, err) == (0, "", "files: 6 written\n")
    assert gpufab("render", "--check") == (0, "", "what is rendered is up to date\n")


def test_render_check_shows_what_is_stale(fabric, gpufab):
    gpufab("render")
    (fabric / "fabric.yml").write_text(SMALL.replace("mtu: 9000", "mtu: 4200"))
    code, out, err = gpufab("render", "--check")
    assert (code, err) == (Exit.DRIFT, "files: 3 to write\n")
    assert "--- a/inventory/host_vars/gpu01/gpufab.yml\n+++ b/inventory/host_vars/gpu01/gpufab.yml\n" in out
    assert gpufab("render", "--diff")[1] == out
    assert gpufab("render", "--check")[0] == 0


def test_render_deletes_what_a_removed_host_leaves(fabric, gpufab):
    gpufab("render")
    text = SMALL.replace("[01-03]", "[01-02]").replace("[11-13]", "[11-12]")
    (fabric / "fabric.yml").write_text(text)
    assert gpufab("render")[2] == "files: 1 written, 1 deleted\n"
    assert not (fabric / "inventory" / "host_vars" / "gpu03").exists()


def test_render_needs_the_lock(fabric, gpufab):
    (fabric / "fabric.lock.yml").unlink()
    code, _, err = gpufab("render")
    assert code == Exit.USAGE
    assert err == "error: fabric.lock.yml: no active host is in it with its devices\nhint: run gpufab lock\n"


def test_render_never_overwrites_a_file_of_the_site(fabric, gpufab):
    (fabric / "inventory").mkdir()
    (fabric / "inventory" / "hosts.yml").write_text("all: {}\n")
    code, _, err = gpufab("render")
    assert code == Exit.USAGE
    assert err.startswith("error: inventory/hosts.yml: not written by gpufab\nhint: ")
    assert (fabric / "inventory" / "hosts.yml").read_text() == "all: {}\n"


def test_ansible_reads_the_inventory_without_a_warning(fabric, gpufab):
    gpufab("render")
    ansible_inventory = shutil.which("ansible-inventory", path=str(_bin()))
    assert ansible_inventory
    environment = {"PATH": str(_bin()), "HOME": str(fabric), "LANG": "C.UTF-8", "ANSIBLE_LOCALHOST_WARNING": "true"}
    result = subprocess.run(
        [ansible_inventory, "-i", "inventory", "--host", "gpu02"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    assert result.stderr == ""
    found = json.loads(result.stdout)
    assert found["roce_ports"][0]["mac"] == "02:00:00:00:02:00"
    assert found["roce_qos"]["dcqcn"]["rdma_cm_tos"] == 106
    assert found["ansible_host"] == "10.0.0.12"


def _bin():
    return Path(sys.executable).parent


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_prints_a_script(gpufab, shell):
    code, out, _ = gpufab("completion", shell)
    assert code == 0
    assert "_GPUFAB_COMPLETE" in out


def test_commands_complete(monkeypatch, gpufab):
    monkeypatch.setenv("_GPUFAB_COMPLETE", "bash_complete")
    monkeypatch.setenv("COMP_WORDS", "gpufab val")
    monkeypatch.setenv("COMP_CWORD", "1")
    with pytest.raises(SystemExit):
        gpufab()


def test_a_bug_is_one_line_and_a_file(monkeypatch, gpufab, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("gpufab_cli.spec.load.load", lambda path: 1 // 0)
    code, out, err = gpufab("validate")
    assert (code, out) == (Exit.USAGE, "")
    first, second = err.splitlines()
    assert first.startswith("error: ZeroDivisionError: ")
    path = second.removeprefix("hint: this is a bug in gpufab; its traceback is in ")
    assert "Traceback (most recent call last)" in Path(path).read_text()


def test_with_v_the_traceback_is_printed(monkeypatch, gpufab, tmp_path):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("gpufab_cli.spec.load.load", lambda path: 1 // 0)
    assert "Traceback (most recent call last)" in gpufab("-v", "validate")[2]


def test_an_error_can_choose_its_exit_code(monkeypatch, gpufab):
    def unreachable(path):
        raise GpufabError("gpu01: unreachable", "is it up?", Exit.UNKNOWN)

    monkeypatch.setattr("gpufab_cli.spec.load.load", unreachable)
    assert gpufab("validate") == (3, "", "error: gpu01: unreachable\nhint: is it up?\n")


def test_an_interrupt_is_no_traceback(monkeypatch, gpufab):
    def interrupt(path):
        raise KeyboardInterrupt

    monkeypatch.setattr("gpufab_cli.spec.load.load", interrupt)
    code, _, err = gpufab("validate")
    assert code != 0
    assert "Traceback" not in err


def test_a_closed_pipe_is_silent(fabric):
    command = f"{sys.executable} -m gpufab_cli render --diff | true"
    result = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)
    assert "Traceback" not in result.stderr
    assert "Exception" not in result.stderr
