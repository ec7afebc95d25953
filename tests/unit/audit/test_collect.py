"""Whatever a host answers, it ends as one of five, and holds up no other."""

import io
import json
import subprocess
import sys
import threading
import zipfile
import zlib

import pytest

from gpufab_cli.audit.collect import LINE_LENGTH, Collected, Failed, Failure, collect
from gpufab_cli.module_utils import archive, snapshot
from gpufab_cli.module_utils.program import MARKER
from gpufab_cli.reach import remote_loader
from gpufab_cli.reach.result import OverdueError, Result, UnreachableError
from gpufab_cli.reach.target import Target
from tests.snapshots import WANTS, in_sync

SNAPSHOT = snapshot.dumps(in_sync("gpu01"))


def target(host="gpu01", become="sudo", python="/usr/bin/python3"):
    return Target(host, host, None, None, None, become, python, "active")


def end(result, **changes):
    """What becomes of one host that answers with ``result``."""

    def execute(*_):
        if isinstance(result, Exception):
            raise result
        return result

    (collected,) = collect({"gpu01": (target(**changes), WANTS["gpu01"])}, execute, seconds=5, forks=1)
    return collected


def printed(stdout="", stderr="", rc=0, cut=False):
    return Result(rc, stdout.encode("utf-8", "surrogateescape"), stderr.encode(), cut)


def failure(*args, **changes):
    found = end(printed(*args, **changes)).result
    assert isinstance(found, Failure), found
    return found


def test_a_snapshot():
    assert end(printed(f"{MARKER}\n{SNAPSHOT}\n")) == Collected("gpu01", in_sync("gpu01"))


def test_a_talkative_login_does_no_harm():
    talk = f"Welcome!\nLast login: today\n{MARKER}\n{SNAPSHOT}\nlogout\n"
    assert end(printed(talk, "motd: no such file\n")).result == in_sync("gpu01")


def test_why_there_is_no_root():
    collected = end(printed(f"{MARKER}\n{SNAPSHOT}\n", f"{remote_loader.REFUSED}sudo: a password is required\n"))
    assert collected.no_root == "sudo: a password is required"
    assert collected.result == in_sync("gpu01")


def test_unreachable():
    found = end(UnreachableError("host key is not known", "add it")).result
    assert found == Failure(Failed.UNREACHABLE, "host key is not known", "add it")


def test_timeout():
    found = end(OverdueError("no answer within 5 s (login)")).result
    assert (found.kind, found.message) == (Failed.TIMEOUT, "no answer within 5 s (login)")


@pytest.mark.parametrize(
    ("stdout", "words"),
    [
        ("", "printed ''"),
        ("\n\n  Maintenance until noon  \nBye\n", "printed 'Maintenance until noon'"),
        ("\x1b[31mred\x07", "printed '?[31mred?'"),
        ("\udcff\udcfe", "printed '��'"),
        (f"{MARKER}\n", "a snapshot that cannot be read"),
        (f"{MARKER}\n{{\n", "a snapshot that cannot be read"),
        (f"{MARKER}\n{SNAPSHOT[:500]}\n", "a snapshot that cannot be read"),
        (f'{MARKER}\n{{"format": 99}}\n', "not of format"),
        (f"{MARKER}\n[]\n", "not of format"),
    ],
)
def test_garbage(stdout, words):
    found = failure(stdout)
    assert found.kind is Failed.GARBAGE
    assert words in found.message


def test_a_long_line_is_quoted_in_part():
    assert len(failure("x" * 10_000).message) < LINE_LENGTH + 20


def test_too_much():
    found = failure("spam\n", rc=-1, cut=True)
    assert (found.kind, found.message) == (Failed.GARBAGE, "printed more than 5 bytes, starting with 'spam'")


def test_a_shell_that_refuses_in_its_own_words():
    assert failure("This account is currently not available.\n", rc=1).kind is Failed.GARBAGE


def test_a_crash_is_told_by_its_last_line():
    found = failure("", "Traceback (most recent call last):\n  File x\nKeyError: 'ports'\n", rc=1)
    assert (found.kind, found.message) == (Failed.FAILED, "exit 1: KeyError: 'ports'")


def test_no_python_says_where_it_was_looked_for():
    found = end(printed("", "bash: /opt/py: No such file or directory\n", rc=127), python="/opt/py").result
    assert found.kind is Failed.FAILED
    assert "/opt/py" in found.hint


def test_a_refusal_of_sudo_is_not_the_gist_of_a_failure():
    found = failure("", f"{remote_loader.REFUSED}sudo is not installed\nImportError: no memfd\n", rc=1)
    assert found.message == "exit 1: ImportError: no memfd"


def test_each_host_ends_and_one_that_hangs_holds_up_none():
    release = threading.Event()
    others = threading.Barrier(4)

    def execute(reached, *_):
        if reached.host == "gpu03":
            release.wait(10)
            raise OverdueError("no answer")
        others.wait(10)  # three hosts are under way beside the one that hangs
        return printed(f"{MARKER}\n{SNAPSHOT}\n")

    jobs = {host: (target(host), WANTS["gpu01"]) for host in ("gpu01", "gpu02", "gpu03", "gpu04")}
    found = collect(jobs, execute, seconds=5, forks=4)
    waiting = threading.Thread(target=others.wait, args=(10,))
    waiting.start()
    first = [next(found).host for _ in range(3)]
    release.set()
    assert set(first) == {"gpu01", "gpu02", "gpu04"}
    assert next(found).result.kind is Failed.TIMEOUT


def test_no_more_hosts_at_a_time_than_told():
    running, most, lock = [0], [0], threading.Lock()

    def execute(*_):
        with lock:
            running[0] += 1
            most[0] = max(most[0], running[0])
        with lock:
            running[0] -= 1
        return printed()

    jobs = {f"gpu{n:02d}": (target(f"gpu{n:02d}"), WANTS["gpu01"]) for n in range(20)}
    assert len(list(collect(jobs, execute, seconds=5, forks=3))) == 20
    assert most[0] <= 3


def test_no_hosts_are_no_hosts():
    assert list(collect({}, lambda *_: printed(), seconds=5, forks=4)) == []


def test_what_gpufab_stumbles_over_is_that_hosts_failure():
    found = end(ZeroDivisionError("bug"))
    assert found.result.kind is Failed.FAILED
    assert "ZeroDivisionError" in found.result.message


def test_the_wishes_follow_the_zip():
    taken = []
    list(collect({"gpu01": (target(), WANTS["gpu01"])}, lambda *a: taken.append(a) or printed(), seconds=7, forks=1))
    ((reached, argv, stdin, seconds),) = taken
    size, _, rest = stdin.partition(b"\n")
    assert zlib.decompress(rest[: int(size)]) == archive.build()
    assert set(json.loads(rest[int(size) :])["wants"]) == {"node", "roce"}
    assert (reached, seconds) == (target(), 7)
    assert argv == remote_loader.command("/usr/bin/python3", root=True)


def test_the_command_holds_nothing_that_a_shell_could_trip_over():
    for argv in (
        remote_loader.command("/usr/bin/python3", root=True),
        remote_loader.command("/usr/bin/python3", root=False),
    ):
        assert not any("\n" in word or "\\'" in word for word in argv)
        assert argv[-4:-1] == ["/usr/bin/python3", "-I", "-c"]


OWN = b"the program's own\n"
PROGRAM = """
import sys
def main(argv):
    print("the program's own", file=sys.stderr)
    print(argv, sys.stdin.read())
    return 7
"""


def zipped(program):
    """What the loader reads first: a zip with this program."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as file:
        file.writestr(f"{archive.PACKAGE}/__init__.py", "")
        file.writestr(f"{archive.PACKAGE}/program.py", program)
    data = zlib.compress(buffer.getvalue())
    return b"%d\n" % len(data) + data


def test_the_loader_runs_the_program_of_the_zip_with_the_rest_of_stdin():
    argv = remote_loader.command(sys.executable, root=False)
    done = subprocess.run(argv, input=zipped(PROGRAM) + b'{"wants": {}}', capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (7, b"\n['collect'] {\"wants\": {}}\n", OWN)


def as_root(path):
    """Run what is to become root, as a login shell would, where PATH is a test's own."""
    argv = remote_loader.command(sys.executable, root=True)
    return subprocess.run(
        argv, input=zipped(PROGRAM) + b"in", capture_output=True, check=False, env={"PATH": str(path)}
    )


@pytest.mark.parametrize(
    ("sudo", "words"),
    [
        ('shift 2; exec "$@"', ""),
        ('echo sudo: unable to resolve host >&2; shift 2; exec "$@"', ""),
        ("echo sudo: a password is required >&2; exit 1", "sudo: a password is required"),
        ("printf 'sudo: a *\\n  lecture\\n' >&2; exit 1", "sudo: a * lecture"),
        ("echo \"ops may not execute '$*' as root\" >&2; exit 1", "ops may not execute '-n -- "),
        ("exit 1", "sudo failed"),
        (None, "sudo is not installed"),
    ],
)
def test_root_by_sudo_if_it_is_given_without_asking(tmp_path, sudo, words):
    """sudo is a script that notes how it was called; the stub is told that it is not root."""
    calls = tmp_path / "calls"
    programs = {"id": "echo 1000", "sudo": sudo and f'printf "%s\\n" "$*" >> {calls}\n{sudo}'}
    for name, text in programs.items():
        if text:
            (tmp_path / name).write_text(f"#!/bin/sh\n{text}\n")
            (tmp_path / name).chmod(0o755)
    done = as_root(tmp_path)
    assert (done.returncode, done.stdout) == (7, b"\n['collect'] in\n")
    assert done.stderr.decode().startswith(f"{remote_loader.REFUSED}{words}" if words else OWN.decode())
    assert done.stderr.endswith(OWN)
    used = calls.read_text().splitlines() if calls.exists() else []
    assert len(used) == (sudo is not None), "sudo is started once"
    assert all(line.startswith(f"-n -- {sys.executable} -I -c ") for line in used)
