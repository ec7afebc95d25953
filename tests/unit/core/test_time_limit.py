"""A module that does not come to its end ends itself."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

from gpufab_cli.module_utils import programs
from gpufab_cli.module_utils.host import HostError
from gpufab_cli.module_utils.time_limit import time_limit

pytestmark = pytest.mark.process


def test_what_takes_too_long_fails_by_name():
    with pytest.raises(HostError, match="no end within 1 s"), time_limit(1):
        time.sleep(60)
    assert signal.alarm(0) == 0


def test_a_program_that_it_waits_for_is_ended_too(tmp_path):
    note = tmp_path / "pid"
    with pytest.raises(HostError, match="no end within 1 s"), time_limit(1):
        programs.run(["sh", "-c", f"echo $$ > {note}; exec sleep 60"], 60)
    with pytest.raises(ProcessLookupError):
        os.kill(int(note.read_text()), 0)


def test_what_is_in_time_is_left_alone():
    before = signal.getsignal(signal.SIGALRM)
    with time_limit(60):
        pass
    assert (signal.alarm(0), signal.getsignal(signal.SIGALRM)) == (0, before)


def test_an_undo_that_hangs_too_ends_the_process():
    program = (
        "import time\n"
        "from gpufab_cli.module_utils import time_limit as t\n"
        "t.GRACE_SECONDS = 1\n"
        "with t.time_limit(1):\n"
        "    try:\n        time.sleep(60)\n"
        "    except Exception:\n        time.sleep(60)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30, check=False)
    assert (done.returncode, json.loads(done.stdout)["failed"]) == (1, True)
