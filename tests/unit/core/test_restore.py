"""A restore is many small ones: devices do not hold up one another, and nothing waits for a disk."""

import json
from dataclasses import dataclass, replace

import pytest

from gpufab_cli.module_utils import desired, journal, record
from gpufab_cli.module_utils.change import Finding, Plan
from gpufab_cli.module_utils.converge import Order, converge
from gpufab_cli.module_utils.dvfs.feature import Dvfs
from gpufab_cli.module_utils.host import HostError
from gpufab_cli.module_utils.restore import LATE, restore
from tests.fakes import FakeHost

from . import dvfs_node
from .dvfs_node import GPU0, GPU1, H100, GpuHost
from .test_converge import ALL, Toy, ToyWant, events, node, statuses, values

DISK = ("/var/", "/etc/")


@dataclass(frozen=True)
class Port:
    pci: str
    value: int


@dataclass(frozen=True)
class PortsWant:
    ports: tuple[Port, ...]

    @property
    def values(self):
        return {port.pci: port.value for port in self.ports}


class Ports(Toy):
    """As the toy, of ports that a wish lists; with two steps of each, and one of no device."""

    want_type = PortsWant
    twice = False

    def only(self, want, device):
        return PortsWant(tuple(port for port in want.ports if port.pci == device))

    def plan(self, snapshot, want):
        plan = super().plan(snapshot, want)
        steps = [part for step in plan.steps for part in (_halves(step) if self.twice else (step,))]
        return Plan(tuple(steps), findings=tuple(Finding("toy.left", (step.device,), "differs") for step in steps))


def _halves(step):
    return [replace(step, name=f"{step.name} {c.path[1]}", changes=(c,)) for c in step.changes]


WANT = PortsWant(tuple(Port(pci, 2) for pci in "pqr"))


@pytest.fixture
def ports(monkeypatch):
    feature = Ports()
    for module in ("features", "restore"):
        names = f"gpufab_cli.module_utils.{module}"
        monkeypatch.setattr(f"{names}.FEATURES", {"toy": feature})
        monkeypatch.setattr(f"{names}.WANT_TYPES", {"toy": PortsWant})
    return feature


class Diskless:
    """A node whose disk takes nothing; what lies in /run is in memory."""

    why = "Read-only file system"

    def _check(self, path):
        if path.startswith(DISK):
            raise HostError(f"cannot write {path}: {self.why}")

    def put(self, path, content, mode=0o644):
        self._check(path)
        super().put(path, content, mode)

    def append(self, path, line, mode=0o640):
        self._check(path)
        super().append(path, line, mode)


class Disk(Diskless, FakeHost):
    pass


class FullGpuHost(Diskless, GpuHost):
    why = "No space left on device"


def booted(kind=FakeHost):
    """A node at boot: its wish is kept, its values are lost."""
    plain = node(p=1, q=1, r=1)
    host = kind(plain.files, answers=plain.answers)
    host.files[record.MANAGEMENT] = "[]\n"
    host.files[desired.desired_path("toy")] = desired.desired_text("toy", WANT)
    return host


def said(capsys):
    return capsys.readouterr().err.splitlines()


def test_a_port_that_refuses_holds_back_no_other_and_is_named(ports, capsys):
    host, ports.broken = booted(), ("p",)
    assert not restore(host, LATE)
    assert values(host) == {"p/a": "1", "p/b": "1", "q/a": "2", "q/b": "2", "r/a": "2", "r/b": "2"}
    assert said(capsys)[-1] == "gpufab: late: not restored: toy p"


def test_of_a_port_whose_step_failed_no_further_one_is_begun(ports, capsys):
    host, ports.deaf, ports.twice = booted(), ("p",), True
    assert not restore(host, LATE)
    assert "gpufab: late: toy p b: not-begun: an earlier step of p failed" in said(capsys)
    assert ("toy p b", "begin") not in events(host)
    assert values(host)["q/b"] == "2"


def test_an_apply_still_ends_at_the_first_failure():
    host, toy = node(p=1, q=1), Ports()
    toy.broken = ("p",)
    outcome = converge(host, toy, PortsWant((Port("p", 2), Port("q", 2))), ALL)
    assert statuses(outcome)["toy q"] == "not-begun"


def test_a_port_that_cannot_be_read_holds_back_no_other(ports):
    host = booted()
    host.unreadable["/toy/p/a"] = "Input/output error"
    assert not restore(host, LATE)
    assert values(host)["q/a"] == values(host)["r/a"] == "2"
    assert values(host)["p/b"] == "1"


@pytest.mark.parametrize("method", ["gather", "plan"])
def test_a_port_over_which_gpufab_stumbles_holds_back_no_other(ports, method, monkeypatch, capsys):
    plain = getattr(Ports, method)

    def stumble(self, first, second, *rest):
        want = rest[0] if rest else second
        if "p" in want.values:
            raise KeyError("names")
        return plain(self, first, second, *rest)

    host = booted()
    monkeypatch.setattr(Ports, method, stumble)
    assert not restore(host, LATE)
    assert values(host) == {"p/a": "1", "p/b": "1", "q/a": "2", "q/b": "2", "r/a": "2", "r/b": "2"}
    assert said(capsys)[-1] == "gpufab: late: not restored: toy p"


def test_one_that_cannot_be_read_back_is_undone_and_holds_back_no_other(ports, monkeypatch):
    plain = Ports.gather

    def stumble(self, host, devices, want):
        if set(want.values) == {"p"} and host.files["/toy/p/b"].strip() == "2":
            raise KeyError("names")
        return plain(self, host, devices, want)

    monkeypatch.setattr(Ports, "gather", stumble)
    host = booted()
    assert not restore(host, LATE)
    assert values(host) == {"p/a": "1", "p/b": "1", "q/a": "2", "q/b": "2", "r/a": "2", "r/b": "2"}
    assert [event for step, event in events(host) if step == "toy p"] == ["begin", "failed", "undone"]


def test_one_gpu_that_refuses_leaves_no_other_without_its_limits(capsys):
    host = GpuHost({GPU0: H100, GPU1: H100})
    want = dvfs_node.want(gpus=(GPU0, GPU1))
    host.files[desired.desired_path("dvfs")] = desired.desired_text("dvfs", want)
    host.refuses = {GPU0}
    assert not restore(host, LATE)
    assert host.locks == {(GPU1, "-lgc"): (1200, 1980)}
    assert host.gpus[GPU1].power_limit_w == 650.0
    assert said(capsys)[-1] == f"gpufab: late: not restored: dvfs gpus ({GPU0})"
    (entry,) = [entry for entry in record.read(host, "dvfs") if entry.path[1] == "graphics_mhz"]
    assert entry.path[0] == GPU1
    host.refuses = set()
    assert restore(host, LATE)


def test_without_a_disk_all_is_restored_and_that_is_said_once(ports, capsys):
    host = booted(Disk)
    before = {path: text for path, text in host.files.items() if path.startswith(DISK)}
    assert restore(host, LATE)
    assert set(values(host).values()) == {"2"}
    assert {path: text for path, text in host.files.items() if path.startswith(DISK)} == before
    (line,) = [line for line in said(capsys) if "without its log" in line]
    assert "Read-only file system" in line


def test_without_a_disk_a_failure_is_undone_all_the_same(ports):
    host, ports.broken = booted(Disk), ("p",)
    assert not restore(host, LATE)
    assert values(host) == {"p/a": "1", "p/b": "1", "q/a": "2", "q/b": "2", "r/a": "2", "r/b": "2"}


def test_what_could_not_be_recorded_counts_as_never_set():
    """A locked clock cannot be read back: without a record of it nobody may claim it."""
    host = FullGpuHost({GPU0: H100})
    want = dvfs_node.want()
    host.files[desired.desired_path("dvfs")] = desired.desired_text("dvfs", want)
    assert restore(host, LATE)
    assert host.locks == {(GPU0, "-lgc"): (1200, 1980)}
    assert record.read(host, "dvfs") is record.ABSENT
    order = Order(check=True)
    left = [c.path for r in converge(host, Dvfs(), want, order).steps for c in r.step.changes]
    assert left == [(GPU0, "graphics_mhz")]


def test_an_apply_begins_nothing_that_it_cannot_write_down(ports):
    host = booted(Disk)
    with pytest.raises(HostError, match="Read-only file system"):
        converge(host, Ports(), WANT, ALL)
    assert set(values(host).values()) == {"1"}


def test_a_disk_that_is_full_by_the_end_of_a_step_keeps_no_apply_from_undoing_it():
    class Filling(FakeHost):
        def append(self, path, line, mode=0o640):
            if json.loads(line)["event"] != "begin":
                raise HostError(f"cannot append to {path}: No space left on device")
            super().append(path, line, mode)

    plain, toy = node(p=1), Toy()
    toy.broken, toy.restored = ("p",), False
    host = Filling(plain.files, answers=plain.answers)
    with pytest.raises(HostError, match="No space left"):
        converge(host, toy, ToyWant({"p": 2}), ALL)
    assert values(host) == {"p/a": "1", "p/b": "1"}
    (left,) = journal.cut_off(host)
    assert left.step == "toy p"


def test_a_restore_tells_what_is_found_after_its_own_writes(ports, capsys):
    assert restore(booted(), LATE)
    assert not [line for line in said(capsys) if "toy.left" in line]
    ports.broken = ("p",)
    assert not restore(booted(), LATE)
    assert [line for line in said(capsys) if "toy.left" in line] == ["gpufab: late: toy.left p: differs"]
