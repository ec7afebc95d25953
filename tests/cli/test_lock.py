"""``gpufab lock`` with nodes that answer from memory."""

import pytest

from gpufab_cli import cli
from gpufab_cli.audit import collect
from gpufab_cli.audit.collect import Collected, Failed, Failure
from gpufab_cli.errors import Exit
from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.devices import Devices
from gpufab_cli.module_utils.snapshot import Snapshot
from gpufab_cli.spec.lock import load_lock
from tests.fabrics import SMALL
from tests.unit.spec.test_draft import GPU, nic


def node(number, *nics):
    devices = Devices(nics or (nic(0, host=number), nic(1, host=number)), (GPU,))
    return Collected(f"gpu{number:02d}", Snapshot("boot", 0, devices))


@pytest.fixture
def fabric(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "fabric.yml"
    path.write_text(SMALL)
    return path


@pytest.fixture
def answers(monkeypatch):
    """What each host answers; a test may change it. ``asked`` holds the hosts of each call."""
    found = {f"gpu{number:02d}": node(number) for number in (1, 2, 3)}
    found["asked"] = []

    def answer(jobs, execute, *, seconds, forks):
        found["asked"].append(sorted(jobs))
        for host, (target, wants) in jobs.items():
            assert (target.host, wants) == (host, {})
            yield found[host]

    monkeypatch.setattr(collect, "collect", answer)
    return found


@pytest.fixture
def gpufab(capfd):
    def run(*arguments):
        code = cli.run(list(arguments))
        out, err = capfd.readouterr()
        return code, out, err

    return run


def test_a_first_lock(fabric, answers, gpufab):
    code, out, err = gpufab("lock")
    assert code == 0
    assert (
        "+      compute/0: {pci: '0000:18:00.0', mac: '02:00:00:00:02:00', serial: SN0, psid: MT_0000000838}\n" in out
    )
    assert "fabric.lock.yml: 3 hosts locked; commit it, then run gpufab render\n" in err
    assert list(load_lock(fabric).hosts) == ["gpu01", "gpu02", "gpu03"]


def test_locked_hosts_are_not_even_asked(fabric, answers, gpufab):
    gpufab("lock")
    answers["gpu01"] = node(1, nic(4, host=1), nic(5, host=1))
    assert gpufab("lock") == (0, "", "fabric.lock.yml: nothing changed\n")
    assert answers["asked"] == [["gpu01", "gpu02", "gpu03"], []]


def test_update_locks_one_host_anew(fabric, answers, gpufab):
    gpufab("lock")
    answers["gpu02"] = node(2, nic(0, host=2), nic(1, host=2, serial="NEW"))
    code, out, _ = gpufab("lock", "--update", "gpu02")
    assert code == 0
    assert answers["asked"][1] == ["gpu02"]
    assert [line for line in out.splitlines() if line.startswith(("-  ", "+  "))] == [
        "-      compute/1: {pci: '0000:28:00.0', mac: '02:00:00:00:02:01', serial: SN1, psid: MT_0000000838}",
        "+      compute/1: {pci: '0000:28:00.0', mac: '02:00:00:00:02:01', serial: NEW, psid: MT_0000000838}",
    ]


def test_check_writes_nothing(fabric, answers, gpufab):
    code, out, _ = gpufab("lock", "--check")
    assert code == Exit.DRIFT
    assert out
    assert not (fabric.parent / "fabric.lock.yml").exists()


def test_a_host_that_does_not_answer_is_named_and_the_others_are_locked(fabric, answers, gpufab):
    answers["gpu02"] = Collected("gpu02", Failure(Failed.UNREACHABLE, "connection refused", "is it up?"))
    code, _, err = gpufab("lock")
    assert code == Exit.UNKNOWN
    assert "error: gpu02: unreachable: connection refused\nhint: is it up?\n" in err
    assert list(load_lock(fabric).hosts) == ["gpu01", "gpu03"]


def test_without_root_a_host_is_not_locked(fabric, answers, gpufab):
    answers["gpu02"] = Collected("gpu02", node(2).result, "a password is required")
    code, _, err = gpufab("lock")
    assert code == Exit.UNKNOWN
    assert "error: gpu02: no root: a password is required\n" in err
    assert "gpu02" not in load_lock(fabric).hosts


def test_a_host_that_does_not_fit_is_an_error(fabric, answers, gpufab):
    answers["gpu02"] = node(2, nic(0, host=2))
    code, _, err = gpufab("lock")
    assert code == Exit.DRIFT
    assert "error: gpu02: 1 ports fit network compute, its profile has 2\nhint: found: 0000:18:00.0" in err
    assert list(load_lock(fabric).hosts) == ["gpu01", "gpu03"]


def test_two_hosts_that_answer_as_one_write_nothing(fabric, answers, gpufab):
    answers["gpu02"] = Collected("gpu02", answers["gpu01"].result)
    code, out, err = gpufab("lock")
    assert (code, out) == (Exit.USAGE, "")
    assert "error: fabric.lock.yml: gpu02 compute/0: 02:00:00:00:01:00 is already gpu01 compute/0\n" in err
    assert not (fabric.parent / "fabric.lock.yml").exists()


def test_a_card_without_a_serial_number_is_told(fabric, answers, gpufab):
    answers["gpu03"] = node(3, nic(0, host=3, serial=Unknown("devlink: not found")), nic(1, host=3))
    code, _, err = gpufab("lock")
    assert code == 0
    assert "warning: gpu03: no serial number of compute/0\n" in err


def test_an_unknown_host_to_update_is_a_usage_error(fabric, answers, gpufab):
    assert gpufab("lock", "--update", "gpu2") == (
        Exit.USAGE,
        "",
        "error: no host 'gpu2' to update\nhint: did you mean gpu02?\n",
    )
