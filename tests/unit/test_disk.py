"""Files on this machine: only files are read, and what a killed write has left is removed by the next."""

import os
import socket
import subprocess
import sys
import time

import pytest

from gpufab_cli import disk
from gpufab_cli.audit import saved
from gpufab_cli.audit.collect import Collected, Failed
from gpufab_cli.errors import GpufabError, SpecErrors
from gpufab_cli.spec import source
from gpufab_cli.spec.lock import load_lock
from gpufab_cli.topology import sources
from tests.snapshots import in_sync


@pytest.fixture(autouse=True)
def fresh():
    disk.sweep.cache_clear()


def odd(kind, path):
    """Make something that is no file."""
    if kind == "a FIFO":
        os.mkfifo(path)
    elif kind == "a directory":
        path.mkdir()
    elif kind == "a device":
        path.symlink_to("/dev/zero")
    else:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
    return path


ODD = ("a FIFO", "a directory", "a device", "a socket")


@pytest.mark.parametrize("kind", ODD)
def test_what_is_no_file_is_refused_at_once_by_name(kind, tmp_path):
    path = odd(kind, tmp_path / "odd")
    with pytest.raises(GpufabError, match=f"odd: {kind}, not a regular file"):
        disk.read(path, 10)


@pytest.mark.parametrize("kind", ODD)
def test_neither_a_fabric_nor_a_lock_nor_a_pasted_topology_is_waited_for(kind, tmp_path):
    with pytest.raises(SpecErrors, match=kind):
        source.read(odd(kind, tmp_path / "fabric.yml"))
    odd(kind, tmp_path / "fabric.lock.yml")
    with pytest.raises(SpecErrors, match=kind):
        load_lock(tmp_path / "fabric.yml")
    with pytest.raises(GpufabError, match=kind):
        sources.from_file(tmp_path / "fabric.yml")


@pytest.mark.parametrize("kind", ODD)
def test_a_saved_snapshot_that_is_no_file_is_its_own_hosts_failure(kind, tmp_path):
    tuple(saved.save([Collected("gpu02", in_sync("gpu02"))], tmp_path))
    odd(kind, tmp_path / "gpu01.json")
    first, second = saved.load(tmp_path, ["gpu01", "gpu02"])
    assert (first.result.kind, kind in first.result.message) == (Failed.GARBAGE, True)
    assert second.result == in_sync("gpu02")


@pytest.mark.parametrize("kind", ["a FIFO", "a device", "a socket"])
def test_saved_snapshots_are_a_directory(kind, tmp_path):
    with pytest.raises(GpufabError, match="not a directory"):
        tuple(saved.load(odd(kind, tmp_path / "then"), ["gpu01"]))


def test_a_file_is_read_to_one_byte_more_than_asked(tmp_path):
    (tmp_path / "x").write_bytes(b"12345")
    assert (disk.read(tmp_path / "x", 3), disk.read(tmp_path / "x", 9)) == (b"1234", b"12345")


def dead_pid():
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


def test_what_killed_writes_left_is_removed_by_the_next(tmp_path):
    here, old = disk._machine(), time.time() - 2 * disk.FOREIGN_SECONDS
    left = {
        f".a.yml.{here}.{dead_pid()}.gpufab": None,
        f".b.yml.{here}.{os.getppid()}.gpufab": 1000.0,  # older than this boot
        ".a.yml.elsewhere.1.gpufab": old,
    }
    kept = {f".a.yml.{here}.{os.getppid()}.gpufab", ".a.yml.elsewhere.2.gpufab", ".a.yml.gpufab", "a.1.gpufab"}
    for name in (*left, *kept):
        (tmp_path / name).write_text("half")
        if left.get(name):
            os.utime(tmp_path / name, (left[name], left[name]))
    disk.replace(tmp_path / "a.yml", "whole")
    assert {path.name for path in tmp_path.iterdir()} == {*kept, "a.yml"}


def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    disk.replace(tmp_path / "x", "old")

    def interrupt(_):
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", interrupt)
    with pytest.raises(KeyboardInterrupt):
        disk.replace(tmp_path / "x", "new")
    assert [(path.name, path.read_text()) for path in tmp_path.iterdir()] == [("x", "old")]
