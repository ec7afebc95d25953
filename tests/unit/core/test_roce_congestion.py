"""ECN, CNP and DCQCN by each driver: what is read, what a write does, and how the driver is told apart."""

import pytest

from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.host import HostError, Output
from gpufab_cli.module_utils.roce import bnxt, cc_params, mlnx_qos, probe, vendor_ecn
from gpufab_cli.module_utils.roce import dcb as iproute_dcb
from gpufab_cli.module_utils.roce.backend import Port
from gpufab_cli.module_utils.roce.knobs import DcqcnWant, debugfs_file
from tests.fakes import FakeHost, ok

PCI = "0000:18:00.1"
PORT = Port(PCI, "ens1", "rocep24s0f1")
CC = f"/sys/kernel/debug/mlx5/{PCI}/cc_params"
BNXT = "/sys/kernel/config/bnxt_re"
KNOBS = ("rpg_ai_rate", "min_time_between_cnps")
MLXCONFIG = ("mlxconfig", "-d", PCI, "-e", "q")
MSTCONFIG = ("mstconfig", "-d", PCI, "-e", "q")


def table(current, name="ROCE_CC_PRIO_MASK_P2", columns="Default              Current              Next Boot"):
    return f"\nDevice #1:\n----------\n\nConfigurations:     {columns}\n*       {name}    255    {current}    255\n"


def inbox(mode="0", **answers):
    files = {f"{CC}/np_cnp_dscp": "48\n", f"{CC}/np_cnp_prio": "6\n", f"{CC}/np_cnp_prio_mode": mode + "\n"}
    knobs = {f"{CC}/rp_ai_rate": "5\n", f"{CC}/np_min_time_between_cnps": "4\n"}
    return FakeHost(
        {**files, **knobs, "/usr/bin/mstconfig": "", **answers.pop("files", {})}, answers=answers.pop("answers", None)
    )


def broadcom(**values):
    found = {"ecn_enable": "0x1", "ecn_marking": "0x1", "roce_prio": "0x3", "cnp_dscp": "0x30", "cnp_prio": "0x7"}
    found |= {"min_time_bet_cnp": "0x4", "roce_dscp": "0x1a", "cc_mode": "0x1", "apply": "0", **values}
    return FakeHost({bnxt.path("rocep24s0f1", name): value + "\n" for name, value in found.items()})


# ---- telling drivers apart ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("files", "driver", "backend"),
    [
        (["/sys/class/net/ens1/ecn/roce_np/cnp_dscp"], "mlx5_core", vendor_ecn),
        ([f"{CC}/np_cnp_dscp"], "mlx5_core", cc_params),
        # The vendor's driver has the debugfs files too; its sysfs says more.
        (["/sys/class/net/ens1/ecn/roce_np/cnp_dscp", f"{CC}/np_cnp_dscp"], "mlx5_core", vendor_ecn),
        ([f"{BNXT}/other/x"], "bnxt_en", bnxt),
        # A Broadcom NIC beside another does not make the other one Broadcom's.
        ([f"{BNXT}/other/x"], "mlx5_core", None),
        ([], "ice", None),
    ],
)
def test_the_driver_is_told_by_what_it_shows(files, driver, backend):
    assert probe.congestion_backend(FakeHost(dict.fromkeys(files, "0")), PORT, driver) is backend


def test_what_no_driver_shows_is_unknown_with_the_best_reason():
    assert probe.no_congestion(FakeHost(), KNOBS).ecn_rp == Unknown(probe.NOTHING)
    assert probe.no_congestion(FakeHost(), KNOBS).dcqcn["rpg_ai_rate"] == Unknown(probe.NOTHING)
    closed = FakeHost()
    closed.unreadable["/sys/kernel/debug"] = "Permission denied"
    assert probe.no_congestion(closed, ()).ecn_rp == Unknown("/sys/kernel/debug: Permission denied")


@pytest.mark.parametrize(
    ("tools", "backend"),
    [(("dcb", "mlnx_qos"), iproute_dcb), (("mlnx_qos",), mlnx_qos), (("dcb",), iproute_dcb), ((), iproute_dcb)],
)
def test_dcb_is_preferred_where_it_is_installed(tools, backend):
    assert probe.dcb_backend(FakeHost(answers={(tool,): ok("") for tool in tools})) is backend


# ---- the kernel's own mlx5 driver -----------------------------------------------------------------------------------


def test_inbox_reads_debugfs_and_the_firmware_mask():
    found = cc_params.read(inbox(answers={MSTCONFIG: ok(table("0x28"))}), PORT, KNOBS)
    assert (found.ecn_np, found.ecn_rp) == ((3, 5), (3, 5))
    assert (found.cnp_dscp, found.cnp_priority) == (48, 6)
    assert found.dcqcn == {"rpg_ai_rate": 5, "min_time_between_cnps": 4}


@pytest.mark.parametrize(
    ("text", "mask"), [("255", tuple(range(8))), ("0xff", tuple(range(8))), ("0", ()), ("8", (3,))]
)
def test_masks(text, mask):
    assert cc_params.parse_mask(text) == mask


@pytest.mark.parametrize("text", ["256", "0x100", "", "True(1)", "-1", "Array[0..7]", "٣"])
def test_what_is_no_mask_is_unknown(text):
    assert isinstance(cc_params.parse_mask(text), Unknown)


def test_a_mask_that_cannot_be_read_is_unknown_and_says_how_it_would_be():
    nothing = FakeHost()
    assert "neither mlxconfig" in cc_params.read_mask(nothing, PCI).reason
    other = inbox(answers={MSTCONFIG: ok(table("255", name="ROCE_CC_PRIO_MASK_P1"))})
    assert "none of that name" in cc_params.read_mask(other, PCI).reason
    next_only = f"Configurations:   Next Boot\n        {cc_params.mask_parameter(PCI)}     255\n"
    assert isinstance(cc_params.read_mask(inbox(answers={MSTCONFIG: ok(next_only)}), PCI), Unknown)
    broken = inbox(answers={MSTCONFIG: Output(1, "-E- Failed to open the device\n", "")})
    assert "Failed to open the device" in cc_params.read_mask(broken, PCI).reason


def test_each_function_of_a_card_is_a_port_with_its_own_mask():
    assert cc_params.mask_parameter("0000:18:00.0") == "ROCE_CC_PRIO_MASK_P1"
    assert cc_params.mask_parameter("0000:18:00.1") == "ROCE_CC_PRIO_MASK_P2"


def test_the_firmware_choosing_the_cnp_priority_is_absent_and_a_write_ends_it():
    host = inbox(mode="1")
    assert cc_params.read(host, PORT, ()).cnp_priority is ABSENT
    cc_params.set_cnp(host, PORT, {"cnp_dscp": 40, "cnp_priority": 7})
    assert host.writes == [(f"{CC}/np_cnp_dscp", "40"), (f"{CC}/np_cnp_prio", "7")]
    cc_params.set_cnp(host, PORT, {"cnp_priority": ABSENT})
    assert host.writes[-1] == (f"{CC}/np_cnp_prio_mode", "1")


def test_a_parameter_the_firmware_does_not_offer_is_unknown():
    found = cc_params.read(inbox(), PORT, ("rpg_gd",)).dcqcn["rpg_gd"]
    assert isinstance(found, Unknown)


def test_nothing_sets_the_mask_at_run_time():
    with pytest.raises(HostError, match="needs a reset"):
        cc_params.set_ecn(inbox(), PORT, {"ecn_rp": ((), (3,))})


def test_every_parameter_has_a_debugfs_file():
    files = {debugfs_file(knob) for knob in DcqcnWant.__dataclass_fields__}
    assert {"rp_ai_rate", "rp_dce_tcp_g", "rp_clamp_tgt_rate_ati", "np_min_time_between_cnps"} <= files
    assert len(files) == 17


# ---- Broadcom -------------------------------------------------------------------------------------------------------


def test_broadcom_reads_configfs():
    found = bnxt.read(broadcom(), PORT, KNOBS)
    assert (found.ecn_np, found.ecn_rp, found.cnp_dscp, found.cnp_priority) == ((3,), (3,), 48, 7)
    assert found.dcqcn["min_time_between_cnps"] == 4
    assert isinstance(found.dcqcn["rpg_ai_rate"], Unknown)
    assert bnxt.read_traffic_class(broadcom(), PORT) == 26 << 2 | 1


def test_until_somebody_makes_the_directory_all_is_absent():
    found = bnxt.read(FakeHost({f"{BNXT}/other/x": "0"}), PORT, ())
    assert found.ecn_np is found.ecn_rp is found.cnp_dscp is found.cnp_priority is ABSENT


@pytest.mark.parametrize("off", [{"ecn_enable": "0"}, {"ecn_marking": "0"}])
def test_ecn_needs_both_reaction_and_marking(off):
    assert bnxt.read(broadcom(**off), PORT, ()).ecn_rp == ()


@pytest.mark.parametrize("text", ["3", "x", "", "0x", "0xfffffffff"])
def test_a_strange_number_is_unknown(text):
    assert isinstance(bnxt.read(broadcom(cnp_dscp=text), PORT, ()).cnp_dscp, Unknown)


def test_numbers_are_written_in_hexadecimal_and_then_applied():
    host = broadcom()
    bnxt.set_cnp(host, PORT, {"cnp_dscp": 26})
    assert host.writes == [
        (f"{BNXT}/rocep24s0f1", "mkdir"),
        (bnxt.path("rocep24s0f1", "cnp_dscp"), "0x1a"),
        (bnxt.path("rocep24s0f1", "apply"), "0x1"),
    ]


def test_turning_ecn_on_and_off():
    host = broadcom(ecn_enable="0", ecn_marking="0", roce_prio="0")
    bnxt.set_ecn(host, PORT, {"ecn_np": ((), (5,)), "ecn_rp": ((), (5,))})
    assert bnxt.read(host, PORT, ()).ecn_rp == (5,)
    bnxt.set_ecn(host, PORT, {"ecn_rp": ((5,), ())})
    assert [value for path, value in host.writes if path.endswith(("ecn_enable", "ecn_marking"))][-2:] == ["0x0", "0x0"]


def test_what_cannot_be_read_before_cannot_be_undone():
    host = broadcom(cc_mode="?")
    found = bnxt.look(host, PORT, ["ecn_rp"])
    with pytest.raises(HostError, match="cc_mode was unreadable, which cannot be undone"):
        bnxt.put_back(host, PORT, found)


def test_a_value_that_is_not_taken_back_is_told():
    host = broadcom(cnp_dscp="0x10")
    found = bnxt.look(host, PORT, ["cnp_dscp"])
    host.files[bnxt.path("rocep24s0f1", "cnp_dscp")] = "0x30\n"
    host.set = lambda path, value: None
    with pytest.raises(HostError, match="cnp_dscp was 0x10"):
        bnxt.put_back(host, PORT, found)


def test_a_forced_traffic_class_is_the_dscp():
    host = broadcom()
    bnxt.set_traffic_class(host, PORT, 106)
    assert (bnxt.path("rocep24s0f1", "roce_dscp"), "0x1a") in host.writes


# ---- the vendor's mlx5 driver ---------------------------------------------------------------------------------------


def test_vendor_writes_only_priorities_that_differ():
    files = {vendor_ecn.ecn_path("ens1", "roce_rp", f"enable/{priority}"): "0\n" for priority in range(8)}
    host = FakeHost({**files, vendor_ecn.ecn_path("ens1", "roce_rp", "rpg_ai_rate"): "5\n"})
    vendor_ecn.set_ecn(host, PORT, {"ecn_rp": ((0, 5), (3, 5))})
    assert [(path[-1], value) for path, value in host.writes] == [("0", "0"), ("3", "1")]
    vendor_ecn.set_dcqcn(host, PORT, {"rpg_ai_rate": 50})
    assert host.writes[-1] == (vendor_ecn.ecn_path("ens1", "roce_rp", "rpg_ai_rate"), "50")
