"""The real doors, on a temporary file system."""

import os
import signal
import sys
from pathlib import Path

import pytest

from gpufab_cli.module_utils import host as doors
from gpufab_cli.module_utils import programs
from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.host import BusyLockError, ForbiddenQueryError, HangError, Host, HostError, Output
from gpufab_cli.module_utils.queries import allowed


@pytest.fixture
def host(tmp_path):
    return Host(str(tmp_path))


def test_absent_empty_and_unreadable_are_three_things(host, tmp_path):
    (tmp_path / "empty").write_text("")
    assert host.read("/missing") is ABSENT
    assert host.read("/missing/below") is ABSENT
    assert host.read("/empty") == ""
    assert host.read("/") == Unknown("/: Is a directory")
    assert host.names("/missing") is ABSENT
    (tmp_path / "dir").mkdir()
    assert host.names("/dir") == ()


def test_what_can_be_no_file_s_name_is_not_there(host):
    """A user's NCCL_TOPO_FILE may hold anything; open(2) takes no NUL, and Python raises ValueError for it."""
    path = "/etc/a\0b"
    looks = (host.read, host.read_of_user, host.read_bytes, host.names, host.link, host.inode, host.size, host.mode)
    for look in looks:
        assert look(path) is ABSENT
    assert not host.exists(path)
    assert isinstance(host.free_bytes(path), Unknown)
    with pytest.raises(HostError, match="cannot write"):
        host.set(path, "1")


def test_an_inode_is_that_of_a_link_itself(host, tmp_path):
    (tmp_path / "target").write_text("")
    (tmp_path / "link").symlink_to("target")
    assert host.inode("/link") == (tmp_path / "link").lstat().st_ino != host.inode("/target")
    assert host.inode("/missing") is ABSENT


def test_set_writes_into_what_exists_and_never_makes_a_file(host, tmp_path):
    (tmp_path / "value").write_text("0\n")
    host.set("/value", "1")
    assert (tmp_path / "value").read_text() == "1\n"
    with pytest.raises(HostError, match="cannot write /other: No such file or directory"):
        host.set("/other", "1")


def test_put_replaces_as_a_whole_and_leaves_no_debris(host, tmp_path):
    host.put("/a/b/file", b"one", 0o600)
    host.put("/a/b/file", b"two", 0o640)
    assert (tmp_path / "a/b/file").read_bytes() == b"two"
    assert (tmp_path / "a/b/file").stat().st_mode & 0o777 == 0o640
    assert [path.name for path in (tmp_path / "a/b").iterdir()] == ["file"]


def test_a_put_that_fails_keeps_the_old_file(host, tmp_path, monkeypatch):
    host.put("/file", b"old")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(HostError, match="No space left on device"):
        host.put("/file", b"new")
    assert (tmp_path / "file").read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_symlink_replaces_and_remove_is_idempotent(host, tmp_path):
    host.symlink("/link", "/one")
    host.symlink("/link", "/two")
    assert host.link("/link") == "/two"
    host.remove("/link")
    host.remove("/link")
    assert host.link("/link") is ABSENT


def test_configfs_directories(host, tmp_path):
    host.make_directory("/d")
    host.make_directory("/d")
    host.remove_directory("/d")
    host.remove_directory("/d")
    with pytest.raises(HostError, match="cannot make directory /x/y"):
        host.make_directory("/x/y")


def test_the_lock_is_one_a_node(host):
    held = pytest.raises(BusyLockError, match="another gpufab run or a restore holds /lock")
    with host.lock("/lock", 1), held, Host(host._root).lock("/lock", 0):
        pass
    with host.lock("/lock", 0):
        pass


def test_the_lock_is_given_back_though_a_child_that_is_stuck_has_it_open(host, tmp_path):
    with host.lock("/lock", 0):
        handles = Path("/proc/self/fd").iterdir()
        (handle,) = [handle for handle in handles if os.path.realpath(handle) == str(tmp_path / "lock")]
        kept = os.dup(int(handle.name))  # as fork() does
    with host.lock("/lock", 0):
        os.close(kept)


def program(tmp_path, text):
    path = tmp_path / "dcb"
    path.write_text(f"#!{sys.executable}\n{text}")
    path.chmod(0o755)


@pytest.mark.process
def test_commands_are_killed_with_their_children_and_never_asked_twice(tmp_path, monkeypatch):
    monkeypatch.setattr(programs, "SEARCH_PATH", str(tmp_path))
    monkeypatch.setattr(doors, "QUERY_SECONDS", 0.5)
    query = ("dcb", "-j", "pfc", "show", "dev", "ens1")
    assert Host().query(*query) == Unknown("dcb is not installed")
    program(tmp_path, "import time, os\nos.fork()\ntime.sleep(60)")
    host, hung = Host(), Unknown("dcb -j pfc show dev ens1 did not answer within 0 s")
    assert host.query(*query) == hung
    program(tmp_path, "import sys\nprint('out')\nsys.exit(3)")
    assert Host().query(*query) == Output(3, "out\n", "")
    assert host.query("dcb", "-j", "pfc", "show", "dev", "ens2") == hung  # once is enough
    (tmp_path / "dcb").write_text("no program")
    assert isinstance(Host().query(*query), Unknown)
    with pytest.raises(HostError, match="cannot be started"):
        Host().run("dcb", "pfc", "set")


@pytest.mark.process
def test_a_command_that_does_not_even_die_is_not_waited_for(monkeypatch):
    monkeypatch.setattr(programs, "KILL_SECONDS", 0.2)
    kill, left = os.killpg, []
    monkeypatch.setattr(os, "killpg", lambda group, _: left.append(group))
    try:
        with pytest.raises(HangError, match="sleep 600 did not answer"):
            Host().run("sleep", "600", seconds=0.2)
    finally:
        for group in left:
            kill(group, signal.SIGKILL)  # it was still there
    assert len(left) == 1


@pytest.mark.parametrize(
    "argv",
    [
        ("dcb", "pfc", "set", "dev", "ens1", "prio-pfc", "all:off"),
        ("dcb", "-j", "pfc", "show", "dev", "ens1; reboot"),
        ("dcb", "-j", "pfc", "show", "dev", "-x"),
        ("dcb", "-j", "pfc", "show", "dev", "ens1", "extra"),
        ("ethtool", "-A", "ens1", "rx", "off"),
        ("ip", "link", "set", "ens1", "down"),
        ("nvidia-smi", "-pm", "1"),
        ("nvidia-smi", "-i", "0000:1b:00.0", "-pl", "500"),
        ("nvidia-smi", "--query-gpu=name", "--format=csv,noheader,nounits", "-lgc", "1"),
        ("nvidia-smi", "--query-gpu=name --filename=/etc/x", "--format=csv,noheader,nounits"),
        ("systemctl", "restart", "sshd"),
        (),
    ],
)
def test_what_is_not_on_the_allow_list_is_refused_before_anything_runs(argv):
    assert not allowed(argv)
    with pytest.raises(ForbiddenQueryError):
        Host().query(*argv)


def test_a_user_s_file_is_read_where_it_is_one_and_nothing_else_is(host, tmp_path):
    (tmp_path / "secret").write_text("s3cret\n")
    (tmp_path / "own").write_bytes(b"NCCL_DEBUG=WARN\n\xff\n")
    (tmp_path / "link").symlink_to(tmp_path / "secret")
    os.link(tmp_path / "secret", tmp_path / "second-name")
    os.mkfifo(tmp_path / "pipe")  # a plain read would wait for somebody to write
    assert host.read_of_user("/own") == "NCCL_DEBUG=WARN\n\udcff"
    assert host.read_of_user("/missing") is ABSENT
    assert host.read_of_user("/link") == Unknown("/link: a link is not followed")
    for name in ("/second-name", "/pipe"):
        assert host.read_of_user(name) == Unknown(f"{name}: no regular file with one name")
