"""GUIDs that meet, on one host or on several; and values that a reset would bring, told once."""

from dataclasses import replace

from gpufab_cli.audit.guids import guids
from gpufab_cli.audit.judge import Kind, _rows
from gpufab_cli.audit.twice import shared
from gpufab_cli.module_utils.change import Change, Impact, Pending, Plan, Step, Where
from gpufab_cli.module_utils.devices import Devices, RdmaDevice
from tests.unit.core.roce_node import nic, snapshot


def host(*found):
    nics = tuple(
        nic(f"0000:18:00.{index}", rdma=(RdmaDevice("mlx5_0", guid, "InfiniBand", "ACTIVE", ""),))
        for index, guid in enumerate(found)
    )
    return replace(snapshot(), devices=Devices(nics))


def test_zero_and_unreadable_guids_are_nobodys():
    assert guids(host("0000:0000:0000:0000", "")) is None


def test_guids_that_meet_are_named_with_all_who_have_them():
    facts = {
        "b": guids(host("0200:0000:0000:0001", "0200:0000:0000:0002")),
        "a": guids(host("0200:0000:0000:0001")),
        "c": guids(host("0200:0000:0000:0003", "0200:0000:0000:0003")),
    }
    assert list(shared(facts)) == [
        (("a", "b"), "02:00:00:00:00:00:00:01 is that of 0000:18:00.0 on a, 0000:18:00.0 on b"),
        (("c",), "02:00:00:00:00:00:00:03 is that of 0000:18:00.0 on c, 0000:18:00.1 on c"),
    ]


RESET = frozenset({Impact.FIRMWARE_RESET})


def test_what_waits_for_a_reset_is_told_once():
    path = ("0000:18:00.0", "NUM_OF_VFS")
    step = Step("firmware-reset compute/0", (Change(path, "16", "8", "firmware.parameter"),), RESET, path[0])
    plan = Plan((step,), (Pending(path, "16", "8", Impact.FIRMWARE_RESET, "firmware.parameter"),))
    assert [row.kind for row in _rows("firmware", plan, {})] == [Kind.PENDING]


def test_what_is_yet_to_be_set_for_the_next_boot_is_told_once():
    path = ("0000:18:00.0", "NUM_OF_VFS")
    first = Step("firmware compute/0", (Change(path, "16", "8", "firmware.parameter", Where.NEXT_BOOT),))
    reset = Step("firmware-reset compute/0", (Change(path, "16", "8", "firmware.parameter"),), RESET)
    assert [row.impact for row in _rows("firmware", Plan((first, reset)), {})] == [frozenset()]
