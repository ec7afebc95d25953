"""Tools and files of each NIC stack: what the emulation prints is what the core reads, in every release."""

import errno

import pytest

from gpufab_cli.lab import faults, faults_roce, machine, toolbox
from gpufab_cli.lab.errors import LabError
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.state import Fault
from gpufab_cli.lab.hardware.sysfs import mount
from gpufab_cli.lab.hardware.tools import mlnx_qos_print
from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.roce import mlnx_qos_text
from tests.unit.lab.conftest import FakeNode, whole
from tests.unit.lab.test_tools import call

A, B = "ens1np0", "ens2np0"
MAP = {dscp: 3 if dscp == 26 else 0 for dscp in range(64)}


def make(tmp_path, kind):
    hw = Hardware(machine.load(kind), machine.Identity("gpu01"), tmp_path / "state.json")
    hw.node = FakeNode(hw)
    for place in hw.machine.ports:
        hw.node.interfaces.setdefault(place.holder, (1, "02:00:00:00:00:01"))
        hw.node.mtus.setdefault(place.holder, 9000)
    return hw


@pytest.fixture
def ofed(tmp_path):
    return make(tmp_path, "l40s-ofed")


@pytest.fixture
def broadcom(tmp_path):
    return make(tmp_path, "l40s-broadcom")


@pytest.fixture
def inbox(tmp_path):
    return make(tmp_path, "l40s-inbox")


def qos(hw, *words, rc=0, uid=0):
    said = call(hw, "mlnx_qos", "-i", A, *words, uid=uid)
    assert said.rc == rc, said.stdout + said.stderr
    return said


def read(hw):
    return mlnx_qos_text.parse(call(hw, "mlnx_qos", "-a", "-i", A).stdout, "", A)


# ---- mlnx_qos -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("release", mlnx_qos_print.RELEASES)
def test_the_core_reads_every_release_or_says_that_it_does_not_know(ofed, release):
    ofed.set_dscp_map(A, dict(MAP))
    qos(ofed, "-f", "0,0,0,1,0,0,0,0")
    qos(ofed, "-s", "ets,ets,ets,ets,ets,ets,strict,ets", "-t", "50,0,0,50,0,0,0,0", "-p", "0,1,2,3,4,5,6,7")
    newest = vars(read(ofed))
    assert not any(isinstance(value, Unknown) for value in newest.values())
    ofed.set_fault(Fault(mlnx_qos_print.FAULT, release))
    found = vars(read(ofed))
    assert {
        name: value for name, value in found.items() if not isinstance(value, Unknown) and value != newest[name]
    } == {}
    assert not isinstance(found["pfc"], Unknown)


def test_the_order_of_one_call_is_the_programs_own(ofed):
    qos(ofed, "--dscp2prio", "set,26,3", "-f", "0,0,0,1,0,0,0,0", "-d", "os")
    assert (ofed.port(A).dscp, ofed.port(A).pfc[3]) == ({26: 3}, True)
    assert "cannot be set in one call" in qos(ofed, "--trust", "dscp", "--dscp2prio", "set,26,3", rc=1).stdout


def test_trust_makes_and_takes_the_whole_map(ofed):
    qos(ofed, "--trust", "dscp")
    assert ofed.port(A).dscp == {dscp: dscp >> 3 for dscp in range(64)}
    qos(ofed, "--dscp2prio", "del,26,3")
    assert ofed.port(A).dscp[26] == 3
    qos(ofed, "--trust", "pcp")
    assert ofed.port(A).dscp == {}


def test_of_two_buffer_options_only_the_first_is_applied(ofed):
    qos(ofed, "--prio2buffer", "0,0,0,1,0,0,0,0", "--buffer_size", "200000,200000,0,0,0,0,0,0")
    assert ofed.port(A).buffer_size[:2] == [200000, 200000]
    assert ofed.port(A).prio_buffer == [0] * 8


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("-f", "1,1"), "pfc list must have 8 items"),
        (("-f", "0,0,0,0,0,0,0,0,0"), "Too many items for PFC"),
        (("-s", "strict,ets,ets,ets,ets,ets,ets,ets", "-t", "50,50,0,0,0,0,0,0"), "must be 0"),
        (("--dscp2prio", "set,64,3"), ""),
    ],
)
def test_bad_input_ends_with_1_and_says_little_on_stdout(ofed, words, text):
    said = qos(ofed, *words, rc=1)
    assert text in said.stdout
    assert said.stderr == ""


def test_what_the_kernel_refuses_ends_in_a_traceback(ofed):
    assert "TypeError" in qos(ofed, "--cable_len", "5", rc=1, uid=1000).stderr


def test_what_is_no_cable_s_length_the_driver_passes_over_in_silence(ofed):
    for metres in ("1000", "0"):
        assert "Cable len: 7\n" in qos(ofed, "--cable_len", metres).stdout


def test_a_device_without_dcb_and_no_device(ofed):
    assert call(ofed, "mlnx_qos", "-i", "eth0").stdout == mlnx_qos_print.NOTHING_SUPPORTED
    assert call(ofed, "mlnx_qos").stdout.startswith("Interface name is required\n")
    assert qos(ofed, "-P", "3").stdout == "0\n"


def test_what_the_firmware_owns_does_not_stay(ofed):
    qos(ofed, "-d", "fw")
    qos(ofed, "-f", "0,0,0,1,0,0,0,0")
    assert not any(ofed.port(A).pfc)
    assert read(ofed).dcbx == "firmware"
    qos(ofed, "-d", "os")
    qos(ofed, "-f", "0,0,0,1,0,0,0,0")
    assert read(ofed).pfc == (3,)


# ---- the vendor's other tools ---------------------------------------------------------------------------------------


def test_cma_roce_reads_writes_and_always_ends_well(ofed):
    assert call(ofed, "cma_roce_tos", "-d", "mlx5_0", "-t", "106").stdout == "106\n"
    lost = call(ofed, "cma_roce_tos", "-d", "mlx5_0", "-t", "300")
    assert (lost.stdout, lost.rc) == ("106\n", 0)
    assert "write error" in lost.stderr
    assert call(ofed, "cma_roce_mode", "-d", "mlx5_0", "-m", "1").stdout == "IB/RoCE v1\n"
    assert not ofed.port(A).cma.directory


@pytest.mark.parametrize(
    ("argv", "uid", "text"),
    [
        (("-d", "mlx5_9"), 0, "Failed to create configuration for mlx5_9\n"),
        (("-d", "mlx5_0", "-p", "2"), 0, "Device mlx5_0 Port 2 does not exist\n"),
        (("-d", "mlx5_0"), 1000, "You must be root to run this\n"),
    ],
)
def test_cma_roce_refuses(ofed, argv, uid, text):
    said = call(ofed, "cma_roce_tos", *argv, uid=uid)
    assert (said.stdout, said.rc) == (text, 1)


def test_cma_roce_needs_its_module(ofed):
    ofed.set_fault(Fault("no-rdma-cm"))
    assert "rdma_cm is not loaded" in call(ofed, "cma_roce_tos", "-d", "mlx5_0").stdout


def test_small_tools(ofed):
    assert call(ofed, "ibdev2netdev").stdout == f"mlx5_0 port 1 ==> {A} (Up)\nmlx5_1 port 1 ==> {B} (Up)\n"
    assert call(ofed, "ofed_info", "-s").stdout == "MLNX_OFED_LINUX-24.10-0.7.0.0:\n"
    assert "\nversion: 24.10-0.7.0\n" in call(ofed, "ethtool", "-i", A).stdout
    gids = call(ofed, "show_gids").stdout.splitlines()
    assert gids[0].startswith("DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4")
    assert gids[-1] == "n_gids_found=0"


def test_lspci_shows_what_manages_nvswitches(tmp_path):
    shown = call(make(tmp_path, "hgx-b200"), "lspci").stdout.splitlines()
    assert sum("Infiniband controller" in line for line in shown) == 4
    assert "27:00.1 Infiniband controller: Mellanox Technologies MT2910 Family [ConnectX-7]" in shown


def test_lspci_hides_capabilities_from_users(ofed):
    assert "SR-IOV" in call(ofed, "lspci", "-vv", "-s", "18:00.0").stdout
    assert "<access denied>" in call(ofed, "lspci", "-vv", "-s", "18:00.0", uid=1000).stdout
    bridges = [line for line in call(ofed, "lspci").stdout.splitlines() if "PCI bridge" in line]
    assert len(call(ofed, "lspci").stdout.splitlines()) == 4 + len(bridges)
    told = call(ofed, "lspci", "-D", "-vv", "-s", bridges[0].split()[0]).stdout
    assert "ACSCtl:\tSrcValid+ TransBlk- ReqRedir+" in told


@pytest.mark.parametrize("kind", machine.names())
def test_tools_of_a_stack(kind):
    found = {tool for tool in toolbox.TOOLS if machine.load(kind).has_tool(tool)}
    assert ("mlnx_qos" in found) == (kind in ("l40s-ofed", "l40s-bond"))
    assert ("dcb" in found) == (kind != "l40s-ofed")


# ---- files ----------------------------------------------------------------------------------------------------------


def write(hw, path, text):
    mount.build(hw).get(path).write(text)


def shown(hw, path):
    return mount.build(hw).get(path).read()


def test_debugfs_is_roots_and_a_cnp_priority_ends_the_firmwares_choice(inbox):
    folder = f"/kernel/debug/mlx5/{inbox.machine.ports[1].pci}/cc_params"
    assert mount.build(inbox).get(f"{folder}/rp_ai_rate").mode == 0o600
    write(inbox, f"{folder}/np_cnp_prio_mode", "1")
    write(inbox, f"{folder}/np_cnp_prio", "7")
    assert (shown(inbox, f"{folder}/np_cnp_prio_mode"), shown(inbox, f"{folder}/np_cnp_prio")) == ("0\n", "7\n")
    with pytest.raises(OSError, match="Invalid") as refused:
        write(inbox, f"{folder}/np_cnp_prio", "8")
    assert refused.value.errno == errno.EINVAL
    assert not any(path.endswith("/ecn") for path in whole(mount.build(inbox)))


def test_broadcoms_files_come_with_a_directory_take_hexadecimal_and_wait_for_apply(broadcom):
    base = "/kernel/config/bnxt_re"
    cc = f"{base}/bnxt_re0/ports/1/cc"
    assert mount.build(broadcom).find(f"{cc}/cnp_dscp") is None
    mount.build(broadcom).get(base).make("bnxt_re0")
    write(broadcom, f"{cc}/cnp_dscp", "26")
    assert shown(broadcom, f"{cc}/cnp_dscp") == "0x30\n"
    write(broadcom, f"{cc}/apply", "1")
    assert shown(broadcom, f"{cc}/cnp_dscp") == "0x26\n"
    with pytest.raises(OSError, match="No such device"):
        mount.build(broadcom).get(base).make("mlx5_0")


def test_a_bond_shows_both_ports_below_it_and_one_rdma_device(tmp_path):
    entries = whole(mount.build(make(tmp_path, "l40s-bond")))
    assert {path for path in entries if path.startswith("/class/infiniband/") and path.count("/") == 3} == {
        "/class/infiniband/mlx5_bond_0"
    }
    bond = "/devices/virtual/net/bond0"
    assert {f"{bond}/lower_ens1f0np0", f"{bond}/lower_ens1f1np1", f"{bond}/bonding/mode"} <= set(entries)
    port = next(path for path in entries if path.endswith("net/ens1f1np1/bonding_slave"))
    assert {entries[f"{port}/mii_status"].read(), entries[f"{port}/ad_aggregator_id"].read()} == {"up\n", "1\n"}


def test_a_dead_card_keeps_its_function_and_loses_its_devices(ofed):
    ofed.set_fault(Fault("nic-dead", A))
    entries = whole(mount.build(ofed))
    assert f"/class/net/{A}" not in entries
    assert "/class/infiniband/mlx5_0" not in entries
    assert "/bus/pci/devices/0000:18:00.0" in entries


def test_a_swapped_card_has_another_serial_number(ofed):
    before = ofed.serial(0)
    ofed.set_fault(Fault("nic-swapped", A))
    assert ofed.serial(0) != before
    assert ofed.serial(1) == ofed.identity.serial("MT", 1)


def test_both_ports_of_a_card_have_one_serial_number(inbox):
    assert inbox.serial(0) == inbox.serial(1)


def test_infiniband_ports_are_no_dcb_devices_and_ethernet_ones_beside_them_are(tmp_path):
    hw = make(tmp_path, "hgx-h100-ib-eth")
    assert call(hw, "dcb", "pfc", "show", "dev", "ibp24s0").program.endswith(".real")
    assert call(hw, "dcb", "pfc", "show", "dev", "ens21np0").stdout.startswith("pfc-cap 8")
    function = f"/devices/{hw.machine.ports[8].sysfs}/infiniband/mlx5_8"
    assert shown(hw, f"{function}/ports/1/link_layer") == "Ethernet\n"


def test_every_roce_fault_is_in_the_table():
    assert {kind.name for kind in faults_roce.KINDS} <= set(faults.KINDS)
    faults.check_argument(faults.find("mlnx-qos-release"), "ofed-5")
    with pytest.raises(LabError, match="needs a release"):
        faults.check_argument(faults.find("mlnx-qos-release"), "ofed-99")
