"""The site's own commands around hosts that are disturbed."""

import sys
import threading

import pytest

from gpufab_cli.apply.drain import Service, run_command
from gpufab_cli.apply.states import FOLDER as NOTES
from gpufab_cli.spec.hooks import Hook

DRAIN = Hook(command=("drain", "{host}"), timeout_s=7)
RESUME = Hook(command=("resume", "--node={host}"), timeout_s=8)


class Site:
    """``fails`` maps a command to why it fails."""

    def __init__(self, folder):
        self.ran, self.fails, self.folder, self._lock = [], {}, folder, threading.Lock()

    def run(self, argv, seconds):
        with self._lock:
            self.ran.append((*argv, seconds))
        return self.fails.get(" ".join(argv), "")

    def service(self, drain=DRAIN, resume=RESUME):
        return Service(self.folder, drain, resume, self.run)


@pytest.fixture
def site(tmp_path):
    return Site(tmp_path)


def test_drained_and_given_back(site):
    service = site.service()
    assert service.drain(["gpu01", "gpu02"]) == {}
    assert service.drained(["gpu01", "gpu02", "gpu03"]) == ("gpu01", "gpu02")
    assert service.resume(["gpu01", "gpu03"]) == {}
    assert service.drained(["gpu01", "gpu02"]) == ("gpu02",)
    assert sorted(site.ran) == [("drain", "gpu01", 7), ("drain", "gpu02", 7), ("resume", "--node=gpu01", 8)]


def test_a_host_is_drained_once(site):
    service = site.service()
    service.drain(["gpu01"])
    service.drain(["gpu01"])
    assert site.ran == [("drain", "gpu01", 7)]


def test_a_host_that_cannot_be_drained_is_given_back(site):
    site.fails["drain gpu01"] = "exit 1: jobs are running"
    service = site.service()
    assert service.drain(["gpu01", "gpu02"]) == {"gpu01": "drain: exit 1: jobs are running; it was given back"}
    assert service.drained(["gpu01", "gpu02"]) == ("gpu02",)
    assert ("resume", "--node=gpu01", 8) in site.ran


def test_a_host_that_can_neither_be_drained_nor_given_back_says_both(site):
    site.fails |= {"drain gpu01": "exit 1", "resume --node=gpu01": "exit 2"}
    service = site.service()
    assert service.drain(["gpu01"]) == {"gpu01": "drain: exit 1; resume: exit 2"}
    assert service.drained(["gpu01"]) == ("gpu01",)


def test_the_next_run_knows_what_a_killed_one_has_drained(site):
    site.service().drain(["gpu01"])
    assert site.service().drained(["gpu01", "gpu02"]) == ("gpu01",)
    assert (site.folder / NOTES).parent.joinpath(".gitignore").read_text() == "*\n"


def test_a_host_is_noted_before_its_drain_begins(site, tmp_path):
    seen = []
    service = Service(tmp_path, DRAIN, RESUME, lambda *_: seen.append((tmp_path / NOTES / "gpu01").exists()) or "")
    service.drain(["gpu01"])
    assert seen == [True]


def test_left_to_the_operator(site):
    service = site.service()
    service.drain(["gpu01"])
    service.leave({"gpu01": "it did not stick"})
    assert site.service().drained(["gpu01"]) == ("gpu01",)
    assert service.states.read("gpu01").left == "it did not stick"


def test_without_hooks_nothing_is_run_or_noted(site):
    service = site.service(None, None)
    assert (service.managed, service.drain(["gpu01"]), service.resume(["gpu01"])) == (False, {}, {})
    assert (site.ran, list(site.folder.iterdir())) == ([], [])


@pytest.mark.process
@pytest.mark.parametrize(
    ("program", "seconds", "why"),
    [
        ("pass", 20, ""),
        ("print('busy'); print('with jobs'); raise SystemExit(3)", 20, "exit 3: with jobs"),
        ("raise SystemExit(1)", 20, "exit 1"),
        ("print('\\x1b[31mred'); raise SystemExit(1)", 20, "exit 1: ?[31mred"),
        ("import time; time.sleep(60)", 0.5, "no end within 0.5 s"),
        ("import sys; sys.exit(bool(sys.stdin.read()))", 20, ""),
    ],
)
def test_a_command(program, seconds, why):
    assert run_command([sys.executable, "-c", program], seconds) == why


@pytest.mark.process
def test_a_program_that_is_not_there():
    assert run_command(["/no/such/program"], 5) == "/no/such/program cannot be started: No such file or directory"
