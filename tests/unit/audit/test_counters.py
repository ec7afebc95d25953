"""Error counters that stand still, rise, or cannot be read."""

import io
import json

import pytest

from gpufab_cli.audit.counters import soak
from gpufab_cli.module_utils import counters
from gpufab_cli.module_utils.host import Output
from gpufab_cli.module_utils.program import MARKER
from gpufab_cli.reach.result import OverdueError, Result
from gpufab_cli.reach.target import Target
from tests.snapshots import WANTS

PORTS = ("0000:18:00.0", "0000:28:00.0")
CALM = {pci: {"out_of_sequence": 5, "link_downed": 1} for pci in PORTS}


def watch(*answers):
    """What becomes of a host that gives these answers."""
    left = list(answers)

    def execute(*_):
        found = left.pop(0)
        if isinstance(found, Exception):
            raise found
        return Result(0, f"Welcome\n{MARKER}\n{found if isinstance(found, str) else json.dumps(found)}\n".encode(), b"")

    target = Target("gpu01", "gpu01", None, None, None, "sudo", "/usr/bin/python3", "active")
    slept = []
    found = soak({"gpu01": (target, WANTS["gpu01"])}, execute, 60, seconds=5, forks=2, sleep=slept.append)
    assert slept == [60]
    return found.get("gpu01", "")


def test_they_stand_still():
    assert watch(CALM, CALM) == ""


def test_one_that_rises_is_named_with_its_rail():
    assert watch(CALM, CALM | {PORTS[1]: {"out_of_sequence": 12, "link_downed": 1}}) == "compute/1 out_of_sequence +7"


def test_ports_on_which_the_same_rose_are_named_together():
    after = {pci: {"out_of_sequence": 5, "link_downed": 2} for pci in PORTS}
    assert watch(CALM, after) == "compute/[0-1] link_downed +1"


def test_one_that_was_reset_counts_from_zero():
    assert watch(CALM, {pci: {"out_of_sequence": 2} for pci in PORTS}) == "compute/[0-1] out_of_sequence +2"


@pytest.mark.parametrize("nothing", [{}, {pci: {} for pci in PORTS}])
def test_no_counters_are_not_still_counters(nothing):
    assert watch(nothing, nothing) == "it has no error counters that can be read"


@pytest.mark.parametrize("garbage", ["[]", "{", '{"a": 1}', '{"a": {"b": "c"}}'])
def test_garbage(garbage):
    assert watch(CALM, garbage) == "its counters cannot be read: printed no counters"


def test_a_host_that_is_lost_meanwhile():
    assert watch(CALM, OverdueError("no answer within 5 s")) == "its counters cannot be read: no answer within 5 s"


FILES = {
    "/sys/class/infiniband/mlx5_3/ports/1/hw_counters/out_of_sequence": "12",
    "/sys/class/infiniband/mlx5_3/ports/1/counters/link_downed": "1",
    "/sys/class/infiniband/mlx5_3/ports/1/counters/symbol_error": "N/A (no PMA)",
    "/sys/class/net/ens6np0/carrier_down_count": "4",
}


class Node:
    """A reader of one mlx5 port."""

    statistics = Output(0, "NIC statistics:\n     rx_discards_phy: 3\n     rx_prio0_discards: 9\n", "")

    def names(self, path):
        folder = f"/sys/bus/pci/devices/{PORTS[0]}"
        return {f"{folder}/infiniband": ("mlx5_3",), f"{folder}/net": ("ens6np0",)}.get(path, ())

    def read(self, path):
        return FILES.get(path)

    def query(self, *argv):
        assert argv == ("ethtool", "-S", "ens6np0")
        return self.statistics


def test_where_they_are_read():
    out = io.StringIO()
    assert counters.answer(Node(), io.StringIO(json.dumps({"ports": PORTS})), out, MARKER)
    line = out.getvalue().removeprefix(f"{MARKER}\n")
    mine = {"out_of_sequence": 12, "link_downed": 1, "carrier_down_count": 4, "rx_discards_phy": 3}
    assert json.loads(line) == {PORTS[0]: mine, PORTS[1]: {}}


@pytest.mark.parametrize("question", ["", "{}", '{"ports": 3}', '{"ports": ["../x"]}'])
def test_a_question_that_is_none(question, capsys):
    assert not counters.answer(Node(), io.StringIO(question), io.StringIO(), MARKER)
    assert "ports on stdin" in capsys.readouterr().err


def test_what_gpufab_stumbles_over_is_that_hosts_reason():
    def execute(target, *_):
        if target.host == "gpu01":
            raise ZeroDivisionError("odd")
        return Result(0, f"{MARKER}\n{{}}\n".encode(), b"")

    way = (None, None, None, "sudo", "/usr/bin/python3", "active")
    jobs = {host: (Target(host, host, *way), WANTS[host]) for host in ("gpu01", "gpu02")}
    found = soak(jobs, execute, 0, seconds=5, forks=2, sleep=lambda _: None)
    assert "ZeroDivisionError" in found["gpu01"]
    assert found["gpu02"] == "it has no error counters that can be read"
