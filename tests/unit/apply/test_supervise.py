"""Nothing that the site's commands start outlives gpufab, however that ends."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gpufab_cli.apply.drain import _Running, run_command

pytestmark = pytest.mark.process

# A hook with a child that has lost its parent, in a session of its own; gpufab is the program around it.
HOOK = "setsid sh -c 'echo $$ >> {note}; sleep 600' & sleep 0.2; echo $$ >> {note}; sleep 600"
GPUFAB = """
import sys
from gpufab_cli.apply.drain import run_command
run_command(["sh", "-c", sys.argv[1]], 600)
"""


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def pids(note, count):
    deadline = time.monotonic() + 60
    while not note.exists() or len(note.read_text().split()) < count:
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return [int(word) for word in note.read_text().split()]


def gone(found):
    deadline = time.monotonic() + 30
    while any(map(alive, found)):
        assert time.monotonic() < deadline, f"still there: {found}"
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_gpufab_is_ended(tmp_path, number):
    note = tmp_path / "pids"
    process = subprocess.Popen([sys.executable, "-c", GPUFAB, HOOK.format(note=note)], stderr=subprocess.DEVNULL)
    found = pids(note, 2)
    assert all(map(alive, found))
    process.send_signal(number)
    process.wait()
    gone(found)


def test_a_hook_that_hangs(tmp_path):
    note = tmp_path / "pids"
    assert run_command(["sh", "-c", HOOK.format(note=note)], 3) == "no end within 3 s"
    gone(pids(note, 2))


def test_what_a_hook_leaves_running_is_ended_and_not_waited_for(tmp_path):
    note = tmp_path / "pids"
    assert run_command(["sh", "-c", f"setsid sh -c 'echo $$ > {note}; exec sleep 600' & sleep 1"], 30) == ""
    gone(pids(note, 1))


def test_none_begins_any_more_once_all_are_ended():
    running = _Running()
    running.end_all()
    assert running.start([sys.executable, "-c", "pass"]) is None


def test_a_program_killed_by_a_signal():
    assert run_command(["sh", "-c", f"kill -9 $$; sleep {os.getpid()}"], 30) == "exit 137"
