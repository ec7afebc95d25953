"""Apply in batches on real nodes: hooks, a canary that is worse, and Ansible or gpufab itself killed in the middle."""

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

from tests.operator import ALLOW, BIN

from .fabric import Fabric

pytestmark = pytest.mark.lab

HOOKS = """
drain: {command: [touch, "drained-{host}"]}
resume: {command: [mv, "drained-{host}", "resumed-{host}"]}
"""
PATIENT = ("--timeout", "180")
APPLY = ("apply", *PATIENT, "--allow", ALLOW)


@pytest.fixture(scope="module")
def fabric(tmp_path_factory):
    made = Fabric(tmp_path_factory.mktemp("rollout"), 2, "{canary: 1, batch: 100%, soak_s: 2}")
    try:
        with (made.folder / "fabric.yml").open("a") as file:
            file.write(HOOKS)
        made.up()
        made.first, made.first_left = made.cli(*APPLY), left(made)
        made.edit("soak_s: 2}", "soak_s: 2, verify: false}")  # the first has shown it
        forget(made)
        yield made
    finally:
        made.lab.down()


@pytest.fixture(autouse=True)
def _forget(fabric):
    """Ends what a test left in force; all but the last end in sync."""
    yield
    for name in fabric.names:
        fabric.lab.repair(name)
    forget(fabric)


def left(fabric):
    """What the hooks have left behind."""
    return sorted(path.name for path in fabric.folder.glob("*ed-gpu*"))


def forget(fabric):
    for name in left(fabric):
        (fabric.folder / name).unlink()


def processes(word):
    """Those whose command line holds a word."""
    found = {}
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            line = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
            if word in line:
                found[path.parent.name] = line
    return found


def applied_and_gone(fabric):
    """An apply that leaves no ssh, no master of one, no process of Ansible, no file: what it starts ends with it."""
    with tempfile.TemporaryDirectory(prefix="gf-") as folder:  # short: sockets lie in it
        fabric.env = {"TMPDIR": folder}
        try:
            done = fabric.cli(*APPLY)
        finally:
            fabric.env = {}
        assert processes(folder) == {}
        assert list(Path(folder).iterdir()) == []
    return done


def test_from_factory_state_the_canary_first(fabric):
    lines = [line for line in fabric.first.stderr.splitlines() if not line.startswith("gpu")]
    told = [line for line in lines if not line.startswith("audit: ")]
    assert told == [
        *("canary of 2: gpu01", "draining gpu01", "verifying gpu01", "giving back gpu01"),
        "watching the error counters of gpu01",
        *("batch 2 of 2: gpu02", "draining gpu02", "verifying gpu02", "giving back gpu02"),
    ]
    assert fabric.first_left == ["resumed-gpu01", "resumed-gpu02"]


def test_a_canary_that_fails_stays_drained_until_the_next_run_which_leaves_nothing_running(fabric):
    for name in fabric.names:
        fabric.lab.break_(name, "pfc-off", port="1")
    fabric.lab.break_("gpu01", "fail-at-write", "1")
    fabric.lab.writes("gpu02", clear=True)
    done = fabric.cli(*APPLY, rc=1)
    assert "Stopped. Not begun: gpu02" in done.stdout
    assert "gpu01 stays drained: " in done.stdout
    assert left(fabric) == ["drained-gpu01"]
    assert fabric.lab.writes("gpu02") == []
    fabric.lab.repair("gpu01")
    assert "giving back gpu01" in applied_and_gone(fabric).stderr


def children(pid):
    """The processes below one, nearest first."""
    found = subprocess.run(["ps", "-o", "pid=", "--ppid", str(pid)], capture_output=True, text=True, check=False)
    direct = [int(word) for word in found.stdout.split()]
    return [*direct, *(pid for child in direct for pid in children(child))]


def alive(pid):
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes() != b""  # empty: a zombie
    except OSError:
        return False


def stalled(fabric):
    """An apply whose third write on gpu01 does not come to its end."""
    fabric.lab.break_("gpu01", "driver-reload")
    fabric.lab.writes("gpu01", clear=True)
    fabric.lab.break_("gpu01", "stall-at-write", "3")
    run = subprocess.Popen(
        [BIN / "gpufab", *APPLY],
        cwd=fabric.folder,
        env={**os.environ, "PATH": f"{BIN}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    deadline = time.monotonic() + 120
    while len(fabric.lab.writes("gpu01")) < 2:
        assert time.monotonic() < deadline, "the run never came to its writes"
        time.sleep(0.1)
    time.sleep(1)
    return run


def gone(pids):
    deadline = time.monotonic() + 60
    while any(alive(pid) for pid in pids):
        assert time.monotonic() < deadline, f"still there: {[pid for pid in pids if alive(pid)]}"
        time.sleep(0.2)


def test_ansible_killed_in_the_middle(fabric):
    run = stalled(fabric)
    below = children(run.pid)
    os.kill(below[0], signal.SIGKILL)  # ansible-playbook itself
    output, _ = run.communicate(timeout=120)
    assert run.returncode == 1, output
    assert "error: ansible-playbook was killed" in output
    assert "still drained: gpu01" in output
    fabric.lab.repair("gpu01")
    gone(below)
    done = fabric.cli(*APPLY)
    assert "giving back gpu01" in done.stderr
    assert left(fabric) == ["resumed-gpu01"]


def test_gpufab_killed_in_the_middle(fabric):
    run = stalled(fabric)
    below = children(run.pid)
    run.kill()
    run.communicate(timeout=120)
    assert left(fabric) == ["drained-gpu01"]
    fabric.lab.repair("gpu01")
    gone(below)
    done = fabric.cli(*APPLY)
    assert "giving back gpu01" in done.stderr
    assert left(fabric) == ["resumed-gpu01"]


def test_a_canary_whose_errors_rise_is_the_last(fabric):
    for name in fabric.names:
        fabric.lab.break_(name, "pfc-off", port="1")
    fabric.lab.break_("gpu01", "errors-rising", port="1")
    fabric.lab.writes("gpu02", clear=True)
    done = fabric.cli(*APPLY, rc=1)
    assert "compute/1 rx_discards_phy +1" in done.stdout
    assert "Stopped. Not begun: gpu02" in done.stdout
    assert left(fabric) == ["resumed-gpu01"]  # it was fit, and idle ports count no errors
    assert fabric.lab.writes("gpu02") == []
