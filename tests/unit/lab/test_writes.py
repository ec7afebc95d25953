"""The write log, and the faults that strike at the Nth write."""

import errno
import json
import threading

import pytest

from gpufab_cli.lab.hardware.state import Fault, State
from gpufab_cli.lab.hardware.writes import Writes


@pytest.fixture
def writes(tmp_path):
    return Writes(tmp_path / "writes.jsonl", State(ports={}))


def _log(writes):
    if not writes._path.exists():
        return []
    return [json.loads(line) for line in writes._path.read_text().splitlines()]


def _write(writes, target, alive=lambda: True):
    with writes.write("sysfs", target, "1", alive):
        pass


def test_what_is_written_is_logged_with_its_outcome(writes):
    _write(writes, "/sys/a")
    with pytest.raises(OSError, match="Invalid"), writes.write("dcb", "pfc set"):
        raise OSError(errno.EINVAL, "Invalid argument")
    assert [(e["face"], e["target"], e["value"], e["errno"]) for e in _log(writes)] == [
        ("sysfs", "/sys/a", "1", 0),
        ("dcb", "pfc set", "", errno.EINVAL),
    ]


def test_the_nth_write_fails_and_only_it(writes):
    writes.set_fault(Fault("fail-at-write", "", 2))
    _write(writes, "a")
    with pytest.raises(OSError, match="Input/output"):
        _write(writes, "b")
    _write(writes, "c")
    assert [e["errno"] for e in _log(writes)] == [0, errno.EIO, 0]


def test_a_stalled_write_goes_on_once_repaired(writes):
    writes.set_fault(Fault("stall-at-write", "", 1))
    writer = threading.Thread(target=_write, args=(writes, "a"))
    writer.start()
    assert _log(writes) == []
    writes.clear_fault("stall-at-write")
    writer.join(10)
    assert [e["errno"] for e in _log(writes)] == [0]


def test_a_writer_that_died_while_stalled_writes_nothing(writes):
    writes.set_fault(Fault("stall-at-write", "", 1))
    with pytest.raises(InterruptedError):
        _write(writes, "a", alive=lambda: False)
    assert [e["errno"] for e in _log(writes)] == [errno.EINTR]
