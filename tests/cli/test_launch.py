"""gpufab launch prints what starts a job, and refuses what cannot be meant."""

import json

import pytest

from gpufab_cli.cli import run
from gpufab_cli.spec.lock import dump
from tests import fabrics

BOX = "ports: [{network: compute, rail: 0-1}]"


@pytest.fixture
def folder(tmp_path, monkeypatch):
    text = fabrics.changed((BOX, f"{BOX}\n    mpi: {{implementation: openmpi}}"))
    (tmp_path / "fabric.yml").write_text(text)
    (tmp_path / "fabric.lock.yml").write_text(dump(fabrics.lock()))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_a_command_is_printed_for_a_shell(folder, capsys):
    assert run(["launch", "--limit", "gpu01", "--hostfile", "hosts", "python", "a b.py", "--run"]) == 0
    out = capsys.readouterr().out
    assert out.startswith("mpirun --np 1 --hostfile hosts")
    assert out.endswith("gpufab-bind python 'a b.py' --run\n")
    assert (folder / "hosts").read_text() == "10.0.0.11 slots=1\n"


@pytest.mark.parametrize(("hosts", "told"), [("gpu01", False), ("gpu01,gpu02", True)])
def test_report_44_one_list_of_devices_for_several_hosts_is_told(folder, capsys, hosts, told):
    assert run(["launch", "--limit", hosts, "-x", "NCCL_IB_HCA==mlx5_0", "prog"]) == 0
    assert ("NCCL_IB_HCA is one for all hosts here" in capsys.readouterr().err) is told


def test_as_json(folder, capsys):
    assert run(["launch", "--launcher", "torchrun", "--format", "json", "--", "train"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [command["host"] for command in found["commands"]] == ["gpu01", "gpu02", "gpu03"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--run", "--launcher", "srun", "x"], "--run starts mpirun, not srun"),
        (["--no-bind", "--gpus", "x"], "--gpus is gpufab-bind's"),
        (["-x", "NOVALUE", "x"], "NAME=VALUE is wanted"),
        (["--run", "--hostfile", "h", "x"], "a hostfile written here"),
        (["--hostfile", "/no/such/folder/hosts", "x"], "/no/such/folder/hosts: No such file or directory"),
        (["--bogus", "x"], "No such option"),
        ([], "Missing argument"),
    ],
)
def test_what_cannot_be_meant_is_refused(folder, capsys, words, said):
    assert run(["launch", *words]) == 2
    assert said in capsys.readouterr().err


FIVE = "[n:1] Rank {} bound to package[0][core:0-23]\n"
FOUR = "[n:1] MCW rank {} bound to socket {}[core 0[hwt 0]]: [B/.][./.]\n"


@pytest.mark.parametrize(
    ("report", "code", "said"),
    [
        (FOUR.format(0, 0) + FOUR.format(1, 0), 1, "n: fail: all 2 ranks are on package 0 of 2"),
        (FOUR.format(0, 0) + FOUR.format(1, 1), 0, "n: pass: 2 ranks on packages 0, 1"),
        (FIVE.format(0) + FIVE.format(1), 3, "n: unknown: all 2 ranks are on package 0;"),
    ],
)
def test_report_48_a_report_of_bindings_is_judged_without_a_fabric(tmp_path, capsys, report, code, said):
    (tmp_path / "report").write_text(report)
    assert run(["launch", "--judge", str(tmp_path / "report")]) == code
    assert capsys.readouterr().out.startswith(said)
    assert run(["launch", "--judge", str(tmp_path / "report"), "--format", "json"]) == code
    assert json.loads(capsys.readouterr().out)["nodes"][0]["host"] == "n"


@pytest.mark.parametrize(("name", "said"), [("report", "no rank's binding in it"), ("none", "No such file")])
def test_what_is_no_report_is_told(tmp_path, monkeypatch, capsys, name, said):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "report").write_bytes(b"nothing\n")
    assert run(["launch", "--judge", name]) == 2
    assert said in capsys.readouterr().err


def test_what_a_program_prints_beside_a_report_may_be_anything(tmp_path, capsys):
    report = tmp_path / "report"
    report.write_bytes(b"\xff\xfe\n" + FIVE.format(0).encode() + FIVE.format(1).encode())
    assert run(["launch", "--packages", "1", "--judge", str(report)]) == 0
    assert capsys.readouterr().out.startswith("n: pass")
    assert run(["launch", "--judge", str(report), "./prog"]) == 2
    assert "no program is started" in capsys.readouterr().err
