"""The lab's own books: machines, numbers, ssh files, faults' arguments, and the command line over them."""

import json
import subprocess

import pytest
from click.testing import CliRunner

from gpufab_cli.commands import lab as command
from gpufab_cli.lab import faults, faults_software, lab, machine, shell
from gpufab_cli.lab.errors import LabError
from gpufab_cli.lab.files import LabFile, NodeRecord, ssh_files
from gpufab_cli.lab.hardware import drift, drift_numa, drift_power
from gpufab_cli.lab.hardware.holders import Holder, of_verbs
from gpufab_cli.lab.machine import Identity
from gpufab_cli.lab.railnet import Site


def test_every_machine_type_is_consistent():
    for name in machine.names():
        kind = machine.load(name)
        places = [*kind.ports, *kind.gpus, *kind.managers]
        assert len({place.pci for place in places}) == len(places)
        assert len({port.netdev for port in kind.ports}) == len(kind.ports)
        assert all(len(port.netdev) <= 15 for port in kind.ports)
        assert {place.numa for place in places} <= {-1, *(node.id for node in kind.numa)}


def test_a_machine_nobody_knows():
    with pytest.raises(LabError, match="no machine type") as raised:
        machine.load("abacus")
    assert "hgx-h100" in raised.value.hint


def test_ports_answer_to_rail_and_name():
    kind = machine.load("hgx-h100")
    assert kind.rail("3") == kind.rail("enp94s0np0") == 3
    with pytest.raises(LabError):
        kind.rail("8")


def test_identities_are_stable_distinct_and_local():
    here, there = Identity("gpu01"), Identity("gpu02")
    macs = {node.mac(rail) for node in (here, there) for rail in range(8)}
    assert len(macs) == 16
    assert Identity("gpu01").mac(0) == here.mac(0)
    assert all(mac.startswith("02:") for mac in macs)
    assert len(here.guid(0)) == 19


def _record(name, number):
    return NodeRecord(name, number, "hgx-h100", 20000 + number)


def test_lab_json_round_trip_and_numbers(tmp_path):
    book = LabFile("t", Site(4200, "10.9.{rail}.{host}/24"), {"a": _record("a", 1), "c": _record("c", 3)})
    book.save(tmp_path / "lab.json")
    assert LabFile.load(tmp_path / "lab.json") == book
    assert book.free_number() == 2


def test_ssh_files_are_strict_and_absolute(tmp_path):
    key = tmp_path / "host"
    key.with_suffix(".pub").write_text("ssh-ed25519 AAAA comment\n")
    ssh_files(tmp_path, [_record("gpu01", 1)], {"gpu01": key})
    assert (tmp_path / "known_hosts").read_text() == "[127.0.0.1]:20001 ssh-ed25519 AAAA\n"
    config = (tmp_path / "ssh_config").read_text()
    for line in (
        "Host gpu01",
        "Port 20001",
        "StrictHostKeyChecking yes",
        "KexAlgorithms ecdh-sha2-nistp256",
        f"UserKnownHostsFile {tmp_path}/known_hosts",
    ):
        assert line in config


def test_every_one_shot_fault_is_a_drift_and_the_other_way_round():
    on_the_node = {kind.name for kind in faults_software.KINDS}
    one_shot = {kind.name for kind in faults.KINDS.values() if kind.mend is None}
    assert one_shot - on_the_node == set(drift.DRIFTS | drift_numa.DRIFTS | drift_power.DRIFTS)


@pytest.mark.parametrize(
    ("name", "argument"),
    [("tool-missing", ""), ("tool-missing", "vi"), ("fail-at-write", "0"), ("fail-at-write", "x"), ("no-root", "dcb")],
)
def test_arguments_that_do_not_fit(name, argument):
    with pytest.raises(LabError) as raised:
        faults.check_argument(faults.find(name), argument)
    assert raised.value.hint


def test_a_fault_nobody_knows():
    with pytest.raises(LabError, match="no fault"):
        faults.find("gremlins")


def test_a_program_that_is_missing_or_fails(monkeypatch):
    def absent(*_, **__):
        raise FileNotFoundError

    monkeypatch.setattr(subprocess, "run", absent)
    with pytest.raises(LabError, match="frob is not installed"):
        shell.run(["frob"])
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: subprocess.CompletedProcess([], 3, "", "a\nlast words\n"))
    with pytest.raises(LabError, match="failed: last words"):
        shell.run(["frob"])


def test_what_is_missing_is_named_in_one_line(monkeypatch):
    monkeypatch.setattr(lab.os, "geteuid", lambda: 0)
    monkeypatch.setattr(lab.shutil, "which", lambda program: None if program == "mmdebstrap" else program)
    with pytest.raises(LabError, match="mmdebstrap") as raised:
        lab.require()
    assert raised.value.hint == "apt install mmdebstrap"
    monkeypatch.setattr(lab.os, "geteuid", lambda: 1000)
    with pytest.raises(LabError, match="root"):
        lab.require()


def test_holders_of_verbs_devices(running, tmp_path, monkeypatch):
    for pid, namespace, target in ((1, "a", "/dev/null"), (70, "a", "/dev/infiniband/uverbs2"), (71, "b", "uverbs3")):
        process = tmp_path / str(pid)
        (process / "ns").mkdir(parents=True)
        (process / "ns" / "pid").symlink_to(f"pid:[{namespace}]")
        (process / "fd").mkdir()
        (process / "fd" / "9").symlink_to(target)
        (process / "status").write_text(f"Name:\tx\nNSpid:\t{pid}\t7\n")
        (process / "comm").write_text("ib_write_bw\n")
    monkeypatch.setattr("gpufab_cli.lab.hardware.holders._PROC", tmp_path)
    assert of_verbs(running) == [Holder(7, "ib_write_bw", 2)]


class _FakeLab:
    def __init__(self, folder, say):
        self.calls = []

    def status(self):
        faults = [{"name": "stall-at-write", "target": "", "count": 4}]
        common = {"machine": "hgx-h100", "platform": "rocky9", "ssh_port": 2201, "boot_id": "x"}
        return [
            {"name": "gpu01", "container": "running", "hardware": "running", "boots": 1, "faults": faults, **common},
            {"name": "gpu02", "container": "stopped", "hardware": "dead", "boots": None, "faults": None, **common},
        ]

    def writes(self, name, clear):
        return [{"time": 1.0, "face": "dcb", "target": "pfc set", "value": "", "errno": 95}]


@pytest.fixture
def run(monkeypatch):
    monkeypatch.setattr(lab, "Lab", _FakeLab)
    return lambda *argv: CliRunner().invoke(command.command, argv)


def test_status_does_not_take_unknown_for_fine(run):
    lines = run("status").output.splitlines()
    assert any("gpu01" in line and "stall-at-write 4" in line for line in lines)
    assert any("gpu02" in line and "dead" in line and "?" in line for line in lines)


def test_json_is_json(run):
    assert json.loads(run("status", "--format", "json").output)[1]["faults"] is None
    assert json.loads(run("writes", "--format", "json", "gpu01").output)[0]["errno"] == 95


def test_writes_say_what_came_of_them(run):
    assert "Operation not supported" in run("writes", "gpu01").output


def test_help_lists_every_fault(run):
    said = run("break", "--help").output
    assert all(kind.name in said for kind in faults.KINDS.values())


# ---- the lab's folder ------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A lab's folder on a machine without containers."""
    monkeypatch.setattr(lab, "require", lambda: None)
    monkeypatch.setattr(lab, "RUN", tmp_path / "run")
    monkeypatch.setattr(lab.podman, "containers", lambda prefix: {})
    monkeypatch.setattr(lab.railnet, "delete", lambda netns: None)
    made = tmp_path / "folder"
    (made / "nodes" / "gpu01").mkdir(parents=True)
    for name in ("id_ed25519", "id_ed25519.pub", "ssh_config", "known_hosts"):
        (made / name).touch()
    return made


def test_down_leaves_no_folder_behind(folder):
    LabFile().save(folder / "lab.json")
    lab.Lab(folder).down()
    assert not folder.exists()


def test_down_leaves_what_others_keep_in_its_folder(folder):
    LabFile().save(folder / "lab.json")
    (folder / "fabric.yml").touch()
    lab.Lab(folder).down()
    assert [path.name for path in folder.iterdir()] == ["fabric.yml"]


def test_a_folder_that_is_no_lab_s_is_left_alone(folder):
    before = sorted(path.name for path in folder.iterdir())
    lab.Lab(folder).down()
    with pytest.raises(LabError, match="is no lab's and has nodes in it"):
        lab.Lab(folder).up(["gpu01"])
    assert sorted(path.name for path in folder.iterdir()) == before
