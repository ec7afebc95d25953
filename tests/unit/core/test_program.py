"""The program on the node: what it collects, and what it brings back."""

import io
import json
from dataclasses import replace

import pytest

from gpufab_cli.module_utils import desired, program, snapshot
from gpufab_cli.module_utils.host import ForbiddenQueryError
from gpufab_cli.module_utils.links.feature import Links
from gpufab_cli.module_utils.restore import LATE, Phase, restore
from tests.snapshots import in_sync

from .test_converge import Toy, ToyWant, node, values


@pytest.fixture
def toys(monkeypatch):
    """Two features of one kind, in the order in which they are restored."""
    first, second = Toy(), Toy()
    first.name = "alpha"
    for module in ("features", "restore"):
        names = f"gpufab_cli.module_utils.{module}"
        monkeypatch.setattr(f"{names}.FEATURES", {"alpha": first, "toy": second})
        monkeypatch.setattr(f"{names}.WANT_TYPES", {"alpha": ToyWant, "toy": ToyWant})
    return first, second


def kept(host, feature, text=None):
    host.files[desired.desired_path(feature)] = text or desired.desired_text(feature, ToyWant({"p": 2}))


def remembering(host):
    host.files["/var/lib/gpufab/management-ports.json"] = "[]\n"
    return host


def test_a_kept_wish_is_brought_back(toys, capsys):
    host = remembering(node(p=1))
    kept(host, "toy")
    assert restore(host, LATE)
    assert values(host) == {"p/a": "2", "p/b": "2"}
    assert "late: toy p: made" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["{", '{"format": 9}', '{"format": 1, "want": {"values": 3}}'])
def test_one_damaged_file_keeps_no_other_wish_from_its_turn(toys, text, capsys):
    host = remembering(node(p=1))
    kept(host, "alpha", text)
    kept(host, "toy")
    assert not restore(host, LATE)
    assert values(host) == {"p/a": "2", "p/b": "2"}
    assert "late: alpha: " in capsys.readouterr().err


def test_a_feature_s_own_mistake_keeps_no_other_wish_from_its_turn(toys, capsys, monkeypatch):
    host = remembering(node(p=1))
    kept(host, "alpha")
    kept(host, "toy")

    def stumble(*_):
        raise ValueError("embedded null byte")

    monkeypatch.setattr(toys[0], "gather", stumble)
    assert not restore(host, LATE)
    assert values(host) == {"p/a": "2", "p/b": "2"}
    assert "late: alpha: unexpected ValueError at test_program.py" in capsys.readouterr().err


def test_without_a_memory_of_management_ports_nothing_is_touched(toys):
    host = node(p=1)
    kept(host, "toy")
    assert not restore(host, LATE)
    assert values(host) == {"p/a": "1", "p/b": "1"}


def test_a_device_restore_touches_that_device_alone(toys):
    host = remembering(node(p=1, q=1))
    kept(host, "toy", desired.desired_text("toy", ToyWant({"p": 2, "q": 2})))
    assert restore(host, Phase("device", device="q"))
    assert values(host) == {"p/a": "1", "p/b": "1", "q/a": "2", "q/b": "2"}


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"wants": {"nosuch": {}}}', '{"wants": {"node": {"x": 1}}}'])
def test_wishes_that_make_no_sense_are_a_usage_error_and_no_snapshot(text, capsys):
    out = io.StringIO()
    assert program.collect(node(), io.StringIO(text), out) == program.USAGE
    assert out.getvalue() == ""
    assert "wishes on stdin" in capsys.readouterr().err


def test_a_snapshot_comes_behind_its_marker():
    out = io.StringIO()
    assert program.collect(node(), io.StringIO('{"wants": {}}'), out) == program.OK
    marker, text = out.getvalue().splitlines()
    assert marker == program.MARKER
    assert json.loads(text)["boot_id"] == "boot-1"


def test_what_one_feature_stumbles_over_costs_no_other_its_values(monkeypatch):
    """Such as a netdev whose name no query allows."""

    def stumble(*_):
        raise ForbiddenQueryError("ethtool -a x;y")

    monkeypatch.setattr(Links, "gather", stumble)
    out = io.StringIO()
    wants = {"node": {"features": []}, "links": {"ports": []}}
    assert program.collect(node(), io.StringIO(json.dumps({"wants": wants})), out) == program.OK
    found = json.loads(out.getvalue().splitlines()[1])
    assert set(found["seen"]) == {"node"}
    (reason,) = found["stumbles"].values()
    assert reason.startswith("ForbiddenQueryError at test_program.py:")
    assert reason.endswith(": ethtool -a x;y")


@pytest.mark.parametrize("argv", [[], ["restore"], ["restore", "soon"], ["restore", "device"], ["collect", "x"]])
def test_usage(argv):
    assert program.main(argv) == program.USAGE


def test_wishes_come_in_the_order_in_which_features_are_applied():
    host = node()
    kept(host, "alpha")
    kept(host, "toy")
    assert [name for name, _ in desired.load(host, {"toy": ToyWant, "alpha": ToyWant})] == ["toy", "alpha"]


def test_a_snapshot_is_never_longer_than_what_is_taken_of_it():
    whole = in_sync()
    big = replace(whole, seen={**whole.seen, "big": ["x" * 5000], "bigger": ["x" * 9000]})
    text = snapshot.within(big, len(snapshot.dumps(whole)) + 6000)
    assert len(text) <= len(snapshot.dumps(whole)) + 6000
    data = json.loads(text)
    assert set(data["seen"]) == {*whole.seen, "big"}
    assert data["stumbles"] == {"bigger": "9004 characters were found, too many to be sent"}
    assert snapshot.within(whole) == snapshot.dumps(whole)
