"""Files are written whole or not at all, by the real doors on a temporary file system, and no umask changes a mode."""

import errno
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufab_cli.module_utils import access, writing
from gpufab_cli.module_utils.host import Host, HostError

LOG = "/var/lib/gpufab/journal.jsonl"


@pytest.fixture
def host(tmp_path):
    return Host(str(tmp_path))


@pytest.fixture
def umask():
    """Sets the umask, and back."""
    before = os.umask(0o022)
    yield os.umask
    os.umask(before)


def short(monkeypatch, sizes):
    """The system takes of each write no more than so many bytes; None: none, as the disk is full."""
    plain, left = os.write, list(sizes)

    def write(handle, content):
        size = left.pop(0) if left else len(content)
        if size is None:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return plain(handle, content[:size])

    monkeypatch.setattr(os, "write", write)


def test_a_line_that_is_taken_in_parts_is_whole(host, tmp_path, monkeypatch):
    short(monkeypatch, [2, 1])
    host.append(LOG, "a line")
    assert (tmp_path / LOG[1:]).read_text() == "a line\n"


@pytest.mark.parametrize("sizes", [[None], [3, None], [3, 0]])
def test_a_line_that_is_not_taken_whole_leaves_nothing(host, tmp_path, monkeypatch, sizes):
    host.append(LOG, "first")
    short(monkeypatch, sizes)
    with pytest.raises(HostError, match=f"cannot append to {LOG}: (No space left on device|nothing was written)"):
        host.append(LOG, "second")
    assert (tmp_path / LOG[1:]).read_text() == "first\n"
    monkeypatch.undo()
    host.append(LOG, "third")
    assert (tmp_path / LOG[1:]).read_text() == "first\nthird\n"


def test_a_line_that_does_not_get_to_the_disk_is_taken_back(host, tmp_path, monkeypatch):
    host.append(LOG, "first")

    def fail(_):
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(HostError, match="Input/output error"):
        host.append(LOG, "second")
    assert (tmp_path / LOG[1:]).read_text() == "first\n"


def test_half_a_line_swallows_no_other(host, tmp_path):
    host.append(LOG, "first")
    with (tmp_path / LOG[1:]).open("a") as stream:
        stream.write('{"torn')
    host.append(LOG, "second")
    assert (tmp_path / LOG[1:]).read_text() == 'first\n{"torn\nsecond\n'


@pytest.mark.parametrize("size", [0, 3])
def test_a_value_that_is_not_taken_whole_is_an_error(host, tmp_path, monkeypatch, size):
    (tmp_path / "value").write_text("0\n")
    short(monkeypatch, [size])
    with pytest.raises(HostError, match=f"cannot write /value: only {size} of 4 bytes were taken"):
        host.set("/value", "1000")
    short(monkeypatch, [4])
    host.set("/value", "1000")  # an attribute that leaves the newline has the value


def test_a_register_that_is_not_written_whole_is_an_error(host, tmp_path, monkeypatch):
    (tmp_path / "config").write_bytes(bytes(8))
    host.patch("/config", 2, b"\x12\x34")
    assert (tmp_path / "config").read_bytes() == b"\0\0\x12\x34\0\0\0\0"
    monkeypatch.setattr(os, "pwrite", lambda handle, content, offset: 1)
    with pytest.raises(HostError, match="cannot write /config: only 1 of 2 bytes were taken"):
        host.patch("/config", 2, b"\0\0")


@pytest.mark.parametrize("limit", [1, 4, 5, 9, 12, 100])
def test_the_end_of_a_file_is_whole_lines(host, tmp_path, limit):
    (tmp_path / "log").write_text("one\ntwo\n\xe9t\xe9\n")
    text = "one\ntwo\n\xe9t\xe9\n"
    found = host.tail("/log", limit)
    assert text.endswith(found)
    assert found == "" or len(text) == len(found) or text[-len(found) - 1] == "\n"
    assert found == text or len(found.encode()) < limit


def tree(folder):
    return {str(p.relative_to(folder)): p.lstat().st_mode for p in folder.rglob("*") if not p.is_symlink()}


def written(folder, mask, set_umask):
    """What a node's files and folders are like after a run with a umask."""
    folder.mkdir()
    set_umask(mask)
    host = Host(str(folder))
    for path in access.PUBLIC:
        host.put(path, b"x", 0o755 if path.endswith("bind") else 0o644)
    host.put("/etc/gpufab/desired.d/roce.json", b"x", 0o600)
    host.put("/var/lib/gpufab/record/roce.json", b"x", 0o600)
    host.put("/etc/systemd/system/sshd.service.d/90-gpufab-memlock.conf", b"x")
    host.append(LOG, "x")
    host.symlink("/etc/systemd/system/sysinit.target.wants/gpufab.service", "/x")
    set_umask(0o022)
    return tree(folder)


def test_modes_are_the_same_whatever_the_umask_is(tmp_path, umask):
    plain, *others = (written(tmp_path / f"{mask:03o}", mask, umask) for mask in (0o022, 0o077, 0o000, 0o777))
    assert all(other == plain for other in others)
    modes = {path: mode & 0o7777 for path, mode in plain.items()}
    assert modes["etc/ucx"] == modes["usr/local/lib/gpufab"] == modes["etc/systemd/system/sshd.service.d"] == 0o755
    assert modes["var/lib/gpufab"] == modes["var/lib/gpufab/record"] == 0o700
    assert (modes["var/lib/gpufab/journal.jsonl"], modes["etc/gpufab/desired.d/roce.json"]) == (0o640, 0o600)
    assert {f"/{path}": modes[path] for path in modes if f"/{path}" in access.OWN} == {
        path: writing.folder_mode(path) for path in access.OWN
    }


@pytest.mark.parametrize("mask", [0o000, 0o077])
def test_a_folder_that_is_there_keeps_its_mode(host, tmp_path, umask, mask):
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc").chmod(0o711)
    umask(mask)
    host.put("/etc/ucx/ucx.conf", b"x")
    assert (tmp_path / "etc").stat().st_mode & 0o777 == 0o711


def test_a_secret_is_never_readable_while_it_is_written(host, tmp_path, monkeypatch):
    seen, plain = [], os.fchmod

    def look(handle, mode):
        seen.append(os.fstat(handle).st_size)
        plain(handle, mode)

    monkeypatch.setattr(os, "fchmod", look)
    host.put("/secret", b"x" * 100_000, 0o600)
    assert seen == [0]


def test_a_file_in_the_way_of_a_folder_is_told(host, tmp_path):
    (tmp_path / "etc").write_text("")
    with pytest.raises(HostError, match="cannot write /etc/ucx"):
        host.put("/etc/ucx/ucx.conf", b"x")


@given(
    lines=st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\n"), max_size=20), max_size=6),
    torn=st.data(),
)
def test_whatever_was_torn_every_line_that_was_appended_is_a_line(tmp_path_factory, lines, torn):
    folder = tmp_path_factory.mktemp("log")
    host = Host(str(folder))
    for line in lines:
        host.append("/log", line)
        if torn.draw(st.booleans()):
            with (folder / "log").open("ab") as stream:
                stream.write(b"torn")
    found = (folder / "log").read_bytes().split(b"\n") if lines else []
    rest = iter(found)
    assert all(line.encode("utf-8", "surrogateescape") in rest for line in lines)


def dead_pid():
    done = subprocess.Popen([sys.executable, "-c", ""])
    done.wait()
    return done.pid


@pytest.mark.parametrize("write", [lambda host: host.put("/etc/x", b"new"), lambda host: host.symlink("/etc/x", "y")])
def test_what_killed_writes_of_a_file_left_is_removed_by_the_next_write_of_it(host, tmp_path, write):
    folder = tmp_path / "etc"
    folder.mkdir()
    left = {f"x.{dead_pid()}.gpufab", f"x.{os.getpid()}.gpufab", f"x.{os.getppid()}.gpufab"}
    kept = {f"y.{dead_pid()}.gpufab", "x.gpufab", "x.1a.gpufab", "ax.1.gpufab"}
    for name in left | kept:
        (folder / name).write_text("half")
    os.utime(folder / f"x.{os.getppid()}.gpufab", (1000, 1000))  # before this boot: the process is another by now
    write(host)
    assert {path.name for path in folder.iterdir()} == {*kept, "x"}


def test_what_another_process_is_writing_is_left_alone(host, tmp_path):
    (tmp_path / "etc").mkdir()
    (tmp_path / f"etc/x.{os.getppid()}.gpufab").write_text("half")
    host.put("/etc/x", b"new")
    assert (tmp_path / f"etc/x.{os.getppid()}.gpufab").exists()


def test_a_link_that_cannot_be_made_leaves_nothing(host, tmp_path):
    (tmp_path / "etc/x").mkdir(parents=True)
    with pytest.raises(HostError):
        host.symlink("/etc/x", "y")
    assert [path.name for path in (tmp_path / "etc").iterdir()] == ["x"]
