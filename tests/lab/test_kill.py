"""The program on the node killed with SIGKILL at any write: a restore does no harm, the next run finishes."""

import json
import subprocess
import time

import pytest

from tests.operator import ALLOW, BIN

from .fabric import Fabric

pytestmark = pytest.mark.lab

KILL = "pkill -9 -xf /usr/bin/python3"  # the module: Ansible pipes it into the interpreter
RESTORE = "/usr/local/lib/gpufab/python -I /usr/local/lib/gpufab/gpufab.pyz restore late"


@pytest.fixture(scope="module")
def fabric(tmp_path_factory):
    made = Fabric(tmp_path_factory.mktemp("kill"), 1)
    try:
        made.up()
        assert made.site().returncode == 0
        yield made
    finally:
        made.lab.down()


def start_site(fabric):
    consent = json.dumps({"gpufab_allow": ALLOW.split(",")})
    return subprocess.Popen(
        [BIN / "ansible-playbook", "-i", "inventory", "gpufab.fabric.site", "--tags", "roce", "-e", consent],
        cwd=fabric.folder,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def wait_for_stall(fabric, made):
    """Until the hardware has taken so many writes and a step has begun whose next one stalls."""
    deadline = time.monotonic() + 60
    while len(fabric.lab.writes("gpu01")) < made or events(fabric)[-1] != "begin":
        assert time.monotonic() < deadline, "the run never came to its writes"
        time.sleep(0.1)
    time.sleep(1)


def events(fabric):
    return [json.loads(line)["event"] for line in fabric.sh("gpu01", "cat /var/lib/gpufab/journal.jsonl").splitlines()]


# A driver reload costs a port seven writes: the first is before anything of a step is made, the later ones within it,
# between steps, and within another port's step.
@pytest.mark.parametrize(("made", "after"), [(0, "restore"), (3, "run"), (7, "run"), (10, "restore")])
def test_killed_after_so_many_writes(fabric, made, after):
    fabric.lab.break_("gpu01", "driver-reload")
    fabric.lab.writes("gpu01", clear=True)
    fabric.lab.break_("gpu01", "stall-at-write", str(made + 1))
    run = start_site(fabric)
    wait_for_stall(fabric, made)
    fabric.sh("gpu01", KILL)
    output, _ = run.communicate(timeout=60)
    assert run.returncode != 0, output
    fabric.lab.repair("gpu01")
    assert events(fabric)[-1] == "begin"
    fabric.cli("audit", rc=1)
    if after == "restore":
        fabric.sh("gpu01", RESTORE)
    else:
        done = fabric.roce()
        assert done.returncode == 0, done.stdout
    fabric.cli("audit", rc=0)


def test_a_restore_in_the_middle_of_an_apply_waits_for_it(fabric):
    fabric.lab.break_("gpu01", "driver-reload")
    fabric.lab.writes("gpu01", clear=True)
    fabric.lab.break_("gpu01", "stall-at-write", "3")
    run = start_site(fabric)
    wait_for_stall(fabric, 2)
    restore = subprocess.Popen(fabric.lab.ssh("gpu01", "sudo", "-n", *RESTORE.split()), stdin=subprocess.DEVNULL)
    time.sleep(1)
    assert restore.poll() is None
    fabric.lab.repair("gpu01")
    run.communicate(timeout=120)
    assert (run.returncode, restore.wait(timeout=120)) == (0, 0)
    fabric.cli("audit", rc=0)
