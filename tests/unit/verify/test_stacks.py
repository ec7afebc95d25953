"""What verify reads where there is no dcb or no vendor sysfs; of mlnx_qos, that it and the node core read the same."""

from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.roce import mlnx_qos_text
from gpufab_cli.verify import stacks
from gpufab_cli.verify import test_roce as roce
from gpufab_cli.verify.expected import Port
from gpufab_cli.verify.port import PortReading
from gpufab_cli.verify.reading import Reading, Section, UnreadableError
from tests.unit.core.mlnx_qos_outputs import DEFAULT_MAP, LLDPAD, NUMBERS, class_lines, dscp_lines, port

TSA = ("ets", "ets", "ets", "ets", "ets", "ets", "strict", "ets")
SHARES = (50, 0, 0, 50, 0, 0, 0, 0)
CLASSES = class_lines(NUMBERS, TSA, SHARES)
PCI = "0000:18:00.1"
RELEASES = [
    port(),
    port(before=LLDPAD, dcbx=None),
    port(trust="pcp"),
    port(buffers="1,2,3,4,5,6,7,8,"),
    port(after_map="default priority:\n\tprio 0\n", cable=10),
    port(dscps=dscp_lines(DEFAULT_MAP, descending=False), pfc=(0, 0, 1, 1, 0, 0, 0, 0)),
    port(classes=CLASSES),
    port(classes=class_lines((0,) * 8, TSA, SHARES, rate="50.0 Gbps", order=(3, 1, 0, 2, 7, 6, 5, 4))),
]


@pytest.mark.parametrize("text", RELEASES)
def test_both_readers_of_mlnx_qos_agree(text):
    core = mlnx_qos_text.parse(text, "", "ens1")
    assert stacks.dscp(text) == {dscp: (priority,) for dscp, priority in core.dscp}
    assert stacks.pfc(text) == core.pfc
    assert stacks.ets(text) == (core.prio_tc, core.tc_tsa, core.tc_bw)
    assert stacks.cable_m(text) == core.cable_m
    assert stacks.buffers(text) == (core.prio_buffer, core.buffer_bytes)


@pytest.mark.parametrize(
    ("reader", "text"),
    [
        (stacks.dscp, port(trust="none")),
        (stacks.dscp, port(dscps="")),  # it is trusted, and the list of it is missing
        (stacks.dscp, port(dscps=dscp_lines(DEFAULT_MAP[:-1]))),
        (stacks.dscp, port().replace("prio:3 dscp:", "prio:x dscp:")),
        (stacks.pfc, port().replace("\tenabled", "\tstate")),
        (stacks.pfc, port().replace("\tpriority    0   1", "\tpriority    1   0")),
        (stacks.ets, port(classes=class_lines(NUMBERS, TSA, SHARES, numbered=False))),
        (stacks.ets, port(classes=CLASSES.replace("\t priority:  5\n", ""))),
        (stacks.ets, port(classes=CLASSES.replace("bw: 50%", "bw: x%"))),
        (stacks.cable_m, port().replace("Cable len: 7\n", "")),
        (stacks.buffers, port(buffers=None)),
        (stacks.buffers, port(prio_buffer=None)),
    ],
)
def test_what_a_release_does_not_print_is_unknown(reader, text):
    with pytest.raises(UnreadableError):
        reader(text)


@settings(max_examples=200)
@given(st.data())
def test_garbled_output_is_a_value_or_unknown_and_never_a_crash(data):
    text = data.draw(st.sampled_from(RELEASES))
    start = data.draw(st.integers(0, len(text)))
    text = text[:start] + data.draw(st.text("0123456789 ,:%\n\ttcsa", max_size=4)) + text[start + 2 :]
    for reader in (stacks.dscp, stacks.pfc, stacks.ets, stacks.cable_m, stacks.buffers):
        with suppress(UnreadableError):
            reader(text)


# ---- a port, by each stack -------------------------------------------------------------------------------------------

WISH = {
    "dscp_priority": tuple(priority for _, priority in DEFAULT_MAP),
    "pfc": (3,),
    "prio_tc": NUMBERS,
    "tc_tsa": TSA,
    "tc_bw": SHARES,
    "cable_m": 7,
    "prio_buffer": (0, 0, 0, 1, 0, 0, 0, 0),
    "buffer_bytes": (262016, 0, 0, 0, 0, 0, 0, 0),
    "ecn": (3,),
    "cnp_dscp": 48,
    "cnp_priority": 6,
    "dcqcn": {"min_time_between_cnps": 2, "rpg_gd": None},
    "traffic_class": 106,
}
PORT = Port("gpu01", "compute/0", PCI, None, None, None, WISH)
LINKS = "link mlx5_0/1 state ACTIVE physical_state LINK_UP netdev eth0 \n"
MASK = "Configurations:   Default   Current   Next Boot\n     ROCE_CC_PRIO_MASK_P2   255   {}   255\n"
DEBUGFS = "np_cnp_dscp 48\nnp_cnp_prio {}\nnp_cnp_prio_mode {}\nnp_min_time_between_cnps 2\nrp_gd 11"
BNXT = "ecn_enable {}\necn_marking 0x2\nroce_prio 0x3\nroce_dscp 0x1a\ncnp_dscp 0x30\ncnp_prio {}\nmin_time_bet_cnp 0x2"
VENDOR = {"mlnx-qos": port(classes=CLASSES)}
INBOX = {"cc-params": DEBUGFS.format(6, 0), "cc-mask": MASK.format("0x8")}
BROADCOM = {"bnxt": BNXT.format("0x1", "0x6")}


def seen(sections):
    common = {f"{PCI}/netdevs": "eth0", f"{PCI}/bonded": "none", "rdma": LINKS}
    found = {**common, **{f"{PCI}/{name}": text for name, text in sections.items()}}
    pairs = {name: text if isinstance(text, tuple) else ("0", text) for name, text in found.items()}
    return PortReading(Reading({name: Section(name, *pair) for name, pair in pairs.items()}), PORT)


DCB_CHECKS = (roce.test_dscp_map, roce.test_pfc, roce.test_ets, roce.test_cable, roce.test_buffers)
CONTROL_CHECKS = (roce.test_ecn, roce.test_cnp, roce.test_dcqcn)


@pytest.mark.parametrize("check", DCB_CHECKS)
def test_mlnx_qos_stands_in_for_a_dcb_that_is_not_there(check):
    check(PORT, seen(VENDOR))


@pytest.mark.parametrize("check", CONTROL_CHECKS)
@pytest.mark.parametrize("stack", [INBOX, BROADCOM], ids=["inbox", "broadcom"])
def test_congestion_control_is_read_where_the_driver_shows_it(check, stack):
    check(PORT, seen(stack))


def test_what_bnxt_re_marks_is_its_traffic_class():
    roce.test_traffic_class(PORT, seen(BROADCOM))


@pytest.mark.parametrize(
    ("check", "stack", "words"),
    [
        (roce.test_pfc, {"mlnx-qos": port(pfc=(0,) * 8)}, "PFC on for priority none, wanted 3"),
        (roce.test_dscp_map, {"mlnx-qos": port(trust="pcp")}, "the port trusts 802.1p"),
        (roce.test_ets, {"mlnx-qos": port()}, "prio_tc is 1 0 2 3 4 5 6 7"),
        (roce.test_ecn, {**INBOX, "cc-mask": MASK.format("0xf7")}, "priority 3 does not react"),
        (roce.test_cnp, {**INBOX, "cc-params": DEBUGFS.format(6, 1)}, "priority None"),
        (
            roce.test_dcqcn,
            {"cc-params": DEBUGFS.format(6, 0).replace("cnps 2", "cnps 4")},
            "min_time_between_cnps 4, wanted 2",
        ),
        (roce.test_ecn, {"bnxt": BNXT.format("0", "0x6")}, "CNPs are not sent"),
        (roce.test_cnp, {"bnxt": BNXT.format("0x1", "0x7")}, "DSCP 48 and priority 7"),
        (roce.test_cnp, {"bnxt": ("unmade", "")}, "nobody has made the device's directory"),
    ],
)
def test_what_is_wrong_fails(check, stack, words):
    with pytest.raises(AssertionError, match=words):
        check(PORT, seen(stack))


@pytest.mark.parametrize(
    ("check", "stack"),
    [
        (roce.test_pfc, {}),
        (roce.test_pfc, {"mlnx-qos": ("hung", "")}),
        (roce.test_pfc, {"mlnx-qos": "\x7fELF"}),
        (roce.test_ecn, {"cc-params": DEBUGFS}),
        (roce.test_ecn, {**INBOX, "cc-mask": MASK.format("0x1ff")}),
        (roce.test_cnp, {"cc-params": "rp_gd 11"}),
        (roce.test_dcqcn, {"bnxt": "ecn_enable 0x1"}),
        (roce.test_ecn, {"bnxt": "ecn_enable 1"}),
        (roce.test_cnp, {}),
    ],
)
def test_what_cannot_be_read_is_unknown(check, stack):
    with pytest.raises(UnreadableError):
        check(PORT, seen(stack))


def test_the_core_would_not_know_either_what_is_unknown_here():
    text = port(classes=class_lines(NUMBERS, TSA, SHARES, numbered=False))
    assert isinstance(mlnx_qos_text.parse(text, "", "ens1").prio_tc, Unknown)


@pytest.mark.parametrize("text", ["ecn_enable", "ecn_enable 1", "ecn_enable 0x1 0x1", "ecn_enable 0x123456789"])
def test_numbers_of_bnxt_are_two_words_a_line(text):
    with pytest.raises(UnreadableError):
        stacks.hexadecimal(text)


@pytest.mark.parametrize("value", ["", "08", "0x", "0x100", "256", "-1", "8 "])
def test_what_is_no_mask_of_eight_priorities(value):
    with pytest.raises(UnreadableError):
        stacks.mask(value)
