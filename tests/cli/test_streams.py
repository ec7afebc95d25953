"""What is printed goes to a pipe, a full disk or nowhere: one line says what failed, and nothing is a bug."""

import errno
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from gpufab_cli.audit import saved
from gpufab_cli.audit.collect import Collected
from gpufab_cli.cli import BROKEN_PIPE
from gpufab_cli.errors import Exit
from tests.snapshots import HOSTS, in_sync

GPUFAB = f"{shlex.quote(sys.executable)} -m gpufab_cli"


@pytest.fixture
def drifted(site):
    tuple(saved.save((Collected(h, in_sync(h, ports={0: {"pfc": ()}})) for h in HOSTS), site / "then"))
    return site


def shell(command, **environment):
    """Run a line of bash: its exit status, stdout and stderr."""
    done = subprocess.run(
        ["bash", "-c", command], env={**os.environ, **environment}, capture_output=True, check=False, timeout=120
    )
    return done.returncode, done.stdout, done.stderr.decode()


@pytest.mark.process
@pytest.mark.parametrize("coding", ["ascii", "latin-1"])
def test_an_encoding_that_lacks_a_character_ends_no_report(drifted, coding):
    code, out, err = shell(f"{GPUFAB} audit --from then", PYTHONIOENCODING=coding, LANG="C")
    assert (code, "bug" in err) == (Exit.DRIFT, False)
    assert b"roce.pfc" in out
    assert out.decode(coding).count("?") > 0


@pytest.mark.process
@pytest.mark.parametrize("form", ["table", "json"])
def test_a_full_disk_under_stdout_is_said_in_one_line(drifted, form):
    code, _, err = shell(f"{GPUFAB} audit --from then --format {form} > /dev/full")
    assert code == Exit.USAGE
    assert err.endswith("error: what is printed cannot be written: No space left on device\n")


@pytest.mark.process
def test_a_closed_stdout_is_said_before_anything_is_done(drifted):
    code, _, err = shell(f"{GPUFAB} audit --from then >&-")
    assert code == Exit.USAGE
    assert err == "error: stdout is closed\nhint: send it to /dev/null where no result is wanted\n"


@pytest.mark.process
def test_a_closed_stderr_is_no_matter(drifted):
    code, out, _ = shell(f"{GPUFAB} audit --from then 2>&-")
    assert (code, b"roce.pfc" in out) == (Exit.DRIFT, True)


@pytest.mark.process
@pytest.mark.parametrize("command", ["audit --from then", "audit --from then --format json", "explain --format json"])
def test_a_reader_that_goes_ends_it_quietly(drifted, command):
    shell(f"({GPUFAB} {command}; echo $? > code) 2> err | sh -c 'exec 0<&-'")
    assert (drifted / "code").read_text() == f"{BROKEN_PIPE}\n"
    assert (drifted / "err").read_text() in ("", "hint: gpufab explain CODE says what a code means and what to do\n")


@pytest.mark.process
def test_a_disk_that_takes_no_more_is_named_with_the_file(drifted):
    code, _, err = shell(f"ulimit -f 0; {GPUFAB} audit --from then --junit audit.xml")
    assert code == Exit.USAGE
    assert "error: audit.xml: File too large\n" in err


def test_a_full_disk_under_save_is_named_with_the_file(gpufab_on, monkeypatch):
    def full(_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    code, _, err = gpufab_on("audit", "--save", "then")
    assert code == Exit.USAGE
    assert err.startswith("error: then/gpu0")
    assert ".json: No space left on device\n" in err
    assert list(Path("then").iterdir()) == []
