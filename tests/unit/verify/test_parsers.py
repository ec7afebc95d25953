"""The suite's own parsers: what no known release prints is unreadable, never a value and never a crash."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufab_cli.verify import parsers
from gpufab_cli.verify.reading import Section, UnreachableError, UnreadableError, parse

PARSERS = {
    "pfc": parsers.pfc,
    "dscp": parsers.dscp,
    "numbers": lambda text: parsers.numbers(text, "tc-bw"),
    "pause": parsers.pause,
    "link": parsers.link,
    "rdma_links": lambda text: parsers.rdma_links(text, "eth0"),
    "flags": parsers.flags,
    "cable_m": parsers.cable_m,
    "buffers": parsers.buffers,
    "named_numbers": parsers.named_numbers,
    "two_numbers": parsers.two_numbers,
    "traffic_class": parsers.traffic_class,
    "rdma_cm": parsers.rdma_cm,
    "firmware": lambda text: parsers.firmware(text, "SRIOV_EN"),
    "v2_gids": lambda text: list(parsers.v2_gids(text)),
}
WORDS = st.sampled_from(
    [
        "prio-pfc",
        "dscp-prio",
        "tc-bw",
        "0:on",
        "1:x",
        "26:3",
        "link",
        "mtu",
        "state",
        "RoCE v2",
        "0",
        "1",
        "\n",
        "{",
        "[1]",
    ]
)


@pytest.mark.parametrize("name", PARSERS)
@given(text=st.text() | st.lists(WORDS, max_size=20).map(" ".join))
def test_garbage_is_unreadable_or_a_value_but_no_crash(name, text):
    with contextlib.suppress(UnreadableError):
        PARSERS[name](text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("pfc", ""),
        ("pfc", "prio-pfc 0:on 1:off "),
        ("pfc", "prio-pfc 0:on 1:off 2:off 3:off 4:off 5:off 6:off 7:maybe "),
        ("pfc", "prio-pfc 0:off\nprio-pfc 0:on"),
        ("dscp", "dscp-prio AF31:3 "),
        ("dscp", "no such thing"),
        ("pause", '[{"rx": "on", "tx": "on"}]'),
        ("pause", "{}"),
        ("link", "3: eth0: <UP> state UP mode"),
        ("rdma_links", "Segmentation fault"),
        ("flags", "1\n1"),
        ("flags", "\n".join("12345678")),
        ("two_numbers", "48"),
        ("traffic_class", "Global tclass=106\nGlobal tclass=104"),
        ("traffic_class", "tclass 106"),
        ("rdma_cm", "106"),
        ("cable_m", "pfc-cap 8 delay far "),
        ("buffers", '{"prio_buffer": [0], "buffer_size": [1]}'),
        ("named_numbers", "rpg_gd"),
        ("named_numbers", "rpg_gd -1"),
        ("v2_gids", "3 fe80::1 RoCE v2"),
    ],
)
def test_nearly_right_is_unreadable(name, text):
    with pytest.raises(UnreadableError):
        PARSERS[name](text)


def test_two_priorities_of_one_dscp_are_both_seen():
    assert parsers.dscp("dscp-prio 26:3 26:4 48:6 ") == {26: (3, 4), 48: (6,)}


def test_the_permanent_mac_counts_where_it_was_changed():
    text = "2: a: <UP> mtu 9000 qdisc mq state UP mode D\\    link/ether 02:00:00:00:00:01 "
    text += "brd ff:ff:ff:ff:ff:ff permaddr 02:00:00:00:00:02"
    assert parsers.link(text) == ("02:00:00:00:00:02", 9000, "UP")


def test_rules_for_single_addresses_are_no_global_traffic_class():
    assert parsers.traffic_class("src_ip=10.0.0.1,dst_ip=10.0.0.2/32,tclass=96\n") is None
    assert parsers.traffic_class("Global tclass=106\nsrc_ip=10.0.0.1,tclass=96") == 106


def test_rdma_devices_of_other_netdevs_do_not_count():
    text = "link a/1 state ACTIVE physical_state LINK_UP netdev eth0 \n"
    text += "link b/1 state DOWN physical_state DISABLED netdev eth00 "
    assert parsers.rdma_links(text, "eth0") == [("a", "ACTIVE", "LINK_UP")]
    assert parsers.rdma_links("", "eth0") == []


@pytest.mark.parametrize(
    ("text", "faults"),
    [
        ('ACTION=="add", SUBSYSTEM=="net", RUN+="/bin/true"\n', 0),
        ('# a comment\n\nENV{ID}!="x\\"y", ATTR{a}="b", \\\n  TAG+="systemd"\n', 0),
        ('GOTO="end"\nLABEL="end"\n', 0),
        ('GOTO="end"\n', 1),
        ('ACTION="add" SUBSYSTEM=="net"\n', 1),
        ("ACTION==add\n", 1),
        ('ACTION=="add\n', 1),
    ],
)
def test_grammar_of_udev_rules(text, faults):
    assert len(list(parsers.udev_faults(text))) == faults


def test_an_answer_without_its_end_is_no_answer():
    whole = "\n@@gpufab uid 0\n0\n\n@@gpufab end 0\n"
    assert parse("Welcome to gpu01\n" + whole).is_root
    for text in ("", "no such command", whole.replace("@@gpufab end 0", "")):
        with pytest.raises(UnreachableError):
            parse(text)


def test_a_section_that_is_not_there_was_not_looked_at():
    section = parse("@@gpufab end 0\n").section("dcb")
    with pytest.raises(UnreadableError, match="dcb: not looked at"):
        section.require("dcb")
    assert not section.there


def test_a_list_that_is_empty_says_so_and_one_that_says_nothing_was_not_read():
    assert Section("x", "0", "none").lines("sysfs") == []
    assert Section("x", "0", "a\tb\nc\td").fields("sysfs", 2) == [["a", "b"], ["c", "d"]]
    for text in ("", "\n", "a\nb\tc", "\x7fELF"):
        with pytest.raises(UnreadableError):
            Section("x", "0", text).fields("sysfs", 2)


@pytest.mark.parametrize("text", ["[" * 100_000, '{"a":' * 100_000])
@pytest.mark.parametrize("name", ["pause", "buffers"])
def test_json_nested_without_end_is_unreadable(name, text):
    with pytest.raises(UnreadableError):
        PARSERS[name](text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("numbers", "tc-bw " + " ".join(f"{tc}:{'9' * 5000}" for tc in range(8))),
        ("cable_m", f"pfc-cap 8 macsec-bypass off delay {'9' * 5000} "),
        ("link", f"2: eth0: <UP> mtu {'9' * 5000} state UP \\    link/ether 02:00:00:00:00:01"),
        ("link", "2: eth0: <UP> mtu 9000 state UP \\    link/ether 02:00:00:00:00:0"),
        ("traffic_class", f"Global tclass={'9' * 5000}"),
        ("two_numbers", f"{'9' * 5000}\n6"),
    ],
)
def test_numbers_without_end_and_half_addresses_are_unreadable(name, text):
    with pytest.raises(UnreadableError):
        PARSERS[name](text)


def test_colours_are_no_part_of_what_a_tool_says():
    reading = parse(
        "@@gpufab firmware/0000:18:00.0 0\n\x1b[1;33m*\x1b[0m  SRIOV_EN  0  \x1b[32m1\x1b[0m  1\n@@gpufab end 0\n"
    )
    assert reading.section("firmware/0000:18:00.0").text == "*  SRIOV_EN  0  1  1"
