"""What mlx5 does when told something, and what it forgets when."""

import errno
import os

import pytest

from gpufab_cli.lab.hardware import drift, sriov
from gpufab_cli.lab.hardware.state import Cma, Ets, Fault, Port, State
from tests.unit.lab.conftest import PORT

OFF = [False] * 8
THREE = [priority == 3 for priority in range(8)]


def test_only_an_effective_pfc_change_flaps_the_link(hw):
    hw.set_pfc(PORT, THREE, None)
    hw.set_pfc(PORT, THREE, None)
    assert hw.port(PORT).link_downs == 1


def test_pfc_and_pause_turn_one_another_off(hw):
    hw.set_pfc(PORT, THREE, None)
    assert not hw.port(PORT).pause_rx
    hw.set_pause(PORT, rx=True, tx=False)
    assert hw.port(PORT).pfc == OFF


def test_pause_as_it_is_leaves_pfc_alone(hw):
    hw.set_pfc(PORT, THREE, None)
    hw.set_pause(PORT, rx=False, tx=False)
    assert hw.port(PORT).pfc == THREE


@pytest.mark.parametrize(
    ("ets", "code"),
    [
        (Ets(tsa=["ets"] * 8, bw=[10] * 8), errno.EINVAL),
        (Ets(tsa=["cbs"] * 8), errno.EOPNOTSUPP),
    ],
)
def test_ets_that_mlx5_refuses(hw, ets, code):
    with pytest.raises(OSError, match=os.strerror(code)):
        hw.set_ets(PORT, ets)
    assert hw.port(PORT).ets == Ets()


def test_a_dscp_has_one_priority(hw):
    hw.set_dscp(PORT, 26, 3)
    hw.set_dscp(PORT, 26, 4)
    with pytest.raises(OSError, match="No such file"):
        hw.unset_dscp(PORT, 26, 3)
    assert hw.port(PORT).dscp == {26: 4}


def test_a_reload_reads_the_map_back_and_forgets_the_rest(hw):
    hw.set_pfc(PORT, THREE, None)
    hw.set_dscp(PORT, 26, 3)
    hw.change(PORT, lambda port: setattr(port, "traffic_class", 106))
    hw.cma_directory(PORT, True)
    hw.driver_reload()
    port = hw.port(PORT)
    port.link_downs = 0
    assert port == Port(dscp={26: 3})


def test_a_reboot_forgets_all_and_has_a_new_id(hw):
    hw.reboot()
    first = hw.state.boot_id
    hw.set_dscp(PORT, 26, 3)
    hw.set_fault(Fault("no-ecn-sysfs"))
    hw.set_fault(Fault("gpu-busy"))
    hw.reboot()
    assert hw.port(PORT) == Port()
    assert hw.state.boot_id != first
    assert [fault.name for fault in hw.state.faults] == ["no-ecn-sysfs"]


def test_unloading_rdma_cm_loses_its_values(hw):
    hw.change(PORT, lambda port: setattr(port, "cma", Cma(True, 106, "RoCE v2")))
    hw.set_fault(Fault("no-rdma-cm"))
    assert hw.port(PORT).cma == Cma()


def test_a_port_held_down_does_not_flap(hw):
    hw.set_fault(Fault("link-down", PORT))
    downs = hw.port(PORT).link_downs
    hw.flap(PORT)
    assert hw.port(PORT).link_downs == downs


def test_a_hardware_process_made_anew_knows_everything(hw):
    for netdev in (PORT, "enp64s0np0"):
        sriov.set_count(hw, hw.place(netdev), 2)
    for edit in reversed(drift.DRIFTS.values()):
        edit(hw, PORT)
    hw.set_dscp(PORT, 48, 6)
    hw.set_fault(Fault("stall-at-write", "", 3))
    hw.save()
    assert State.load(hw._path) == hw.state


def test_pretending_is_of_one_thread_and_of_one_moment(hw):
    with hw.pretending():
        hw.set_dscp(PORT, 26, 3)
    assert hw.port(PORT).dscp == {}
    hw.set_dscp(PORT, 26, 3)
    assert hw.port(PORT).dscp == {26: 3}


@pytest.mark.parametrize("name", sorted(set(drift.DRIFTS) - {"driver-reload"}))
def test_every_drift_changes_its_port_and_no_other(hw, name):
    def tuned(port):
        port.pause_rx = port.pause_tx = False
        port.pfc, port.traffic_class = list(THREE), 106
        port.dscp, port.cma = {26: 3}, Cma(True, 106, "RoCE v2")
        port.ets = Ets(tsa=["ets"] * 8, bw=[100, *[0] * 7])

    other = "enp64s0np0"
    for netdev in (PORT, other):
        hw.change(netdev, tuned)
        sriov.set_count(hw, hw.place(netdev), 2)
        for index, vf in enumerate(hw.port(netdev).sriov.vfs):
            vf.rdma, vf.own_guid = -1, f"02:00:00:00:00:00:00:0{index}"
    drift.DRIFTS[name](hw, PORT)
    assert hw.port(PORT) != hw.port(other)
    assert hw.port(other).dscp == {26: 3}
