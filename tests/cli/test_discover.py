"""``gpufab discover`` with nodes that answer from memory."""

import pytest

from gpufab_cli import cli
from gpufab_cli.audit import collect
from gpufab_cli.audit.collect import Collected, Failed, Failure
from gpufab_cli.errors import Exit
from gpufab_cli.module_utils.devices import Devices
from gpufab_cli.module_utils.snapshot import Snapshot
from gpufab_cli.spec.lock import load_lock
from tests.unit.spec.test_draft import GPU, nic


@pytest.fixture
def asked(monkeypatch, tmp_path):
    """The targets that were asked; hosts whose name holds ``dead`` do not answer."""
    monkeypatch.chdir(tmp_path)
    found = {}

    def answer(jobs, execute, *, seconds, forks):
        for index, (host, (target, wants)) in enumerate(jobs.items()):
            found[host] = target
            assert wants == {}
            devices = Devices((nic(0, host=index), nic(1, host=index)), (GPU,))
            dead = Failure(Failed.UNREACHABLE, "no route to host")
            yield Collected(host, dead if "dead" in host else Snapshot("boot", 0, devices))

    monkeypatch.setattr(collect, "collect", answer)
    return found


def gpufab(capfd, *arguments):
    code = cli.run(["discover", *arguments])
    out, err = capfd.readouterr()
    assert out == ""
    return code, err


def test_both_files_are_written(asked, tmp_path, capfd):
    code, err = gpufab(capfd, "gpu[01-03]", "--dir", "pod", "--user", "ops", "--ssh-config", "ssh/config")
    assert code == 0
    text = (tmp_path / "pod/fabric.yml").read_text()
    assert '{name: "gpu[01-03]"' in text or "{name: 'gpu[01-03]'" in text
    assert "user: ops\n  ssh_config: ../ssh/config\n" in text
    assert sorted(load_lock(tmp_path / "pod/fabric.yml").hosts) == ["gpu01", "gpu02", "gpu03"]
    assert asked["gpu02"].ssh_config == tmp_path / "ssh/config"
    assert "3 hosts; edit it, then run gpufab validate -f pod/fabric.yml" in err


def test_a_file_of_hosts(asked, tmp_path, capfd):
    (tmp_path / "list").write_text("# rack 1\ngpu01 10.0.0.1\n\ngpu[02-03] 10.0.0.[2-3]  # new\nx1\n")
    assert gpufab(capfd, "--hosts", "list")[0] == 0
    assert {name: target.address for name, target in asked.items()} == {
        "gpu01": "10.0.0.1",
        "gpu02": "10.0.0.2",
        "gpu03": "10.0.0.3",
        "x1": "x1",
    }


def test_a_host_that_does_not_answer_is_told_and_left_out(asked, tmp_path, capfd):
    code, err = gpufab(capfd, "gpu01", "dead1")
    assert code == Exit.UNKNOWN
    assert "error: dead1: unreachable: no route to host" in err
    assert "# Not in it: dead1: unreachable: no route to host\n" in (tmp_path / "fabric.yml").read_text()
    assert list(load_lock(tmp_path / "fabric.yml").hosts) == ["gpu01"]


def test_nothing_is_written_when_nobody_answers(asked, tmp_path, capfd):
    assert gpufab(capfd, "dead1")[0] == Exit.UNKNOWN
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["fabric.yml", "fabric.lock.yml"])
def test_what_is_there_stays(asked, tmp_path, capfd, name):
    (tmp_path / name).write_text("mine")
    code, err = gpufab(capfd, "gpu01")
    assert (code, asked) == (2, {})
    assert err == f"error: {name}: already there\nhint: name another directory with --dir\n"


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ([], "error: no host is named"),
        (["-oProxyCommand=id"], "error: No such option"),
        (["--", "-oProxyCommand=id"], "error: '-oProxyCommand=id' is not a host name"),
        (["gpu01; id"], "error: 'gpu01; id' is not a host name"),
        (["gpu[3-1]"], "error: range '3-1' runs backwards"),
        (["gpu01", "--user", "-x"], "error: --user: '-x' is not a login name"),
        (["gpu01", "--port", "0"], "error: --port: 0 is not in 1..65535"),
        (["--hosts", "none"], "error: none: No such file or directory"),
        (["--hosts", "bad"], "error: bad:2: more than a name and an address"),
        (["--hosts", "uneven"], "error: uneven:1: 2 addresses for 3 names"),
    ],
)
def test_what_cannot_be_asked(asked, tmp_path, capfd, arguments, told):
    (tmp_path / "bad").write_text("a\na b c\n")
    (tmp_path / "uneven").write_text("a[1-3] 10.0.0.[1-2]\n")
    code, err = gpufab(capfd, *arguments)
    assert code == 2
    assert told.lower() in err.lower()
    assert asked == {}
