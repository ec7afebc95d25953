"""``ip link`` of rails: what a veth is told as, and which settings of VFs are taken, refused by ip or by the kernel."""

import json

import pytest

from gpufab_cli.lab.hardware import sriov

from .conftest import PORT
from .test_tools import call

# What iproute2 says of a veth (observed with 6.1), and the keys that it has for a PCI function (observed with 6.15).
VETH = {
    "ifindex": 3, "link_index": 9, "ifname": PORT, "flags": ["UP"], "mtu": 9000, "qdisc": "noqueue", "operstate": "UP",
    "linkmode": "DEFAULT", "group": "default", "txqlen": 1000, "link_type": "ether", "address": "02:00:00:00:00:01",
    "broadcast": "ff:ff:ff:ff:ff:ff", "link_netnsid": 0, "promiscuity": 0, "allmulti": 0, "min_mtu": 68,
    "max_mtu": 65535, "linkinfo": {"info_kind": "veth"}, "inet6_addr_gen_mode": "eui64", "num_tx_queues": 2,
    "num_rx_queues": 2, "gso_max_size": 65536, "gso_max_segs": 65535, "stats64": {"rx": {}, "tx": {}},
    "altnames": ["enx0"],
}  # fmt: skip
KEYS = [
    "ifindex", "ifname", "flags", "mtu", "qdisc", "operstate", "linkmode", "group", "txqlen", "link_type", "address",
    "broadcast", "promiscuity", "allmulti", "min_mtu", "max_mtu", "inet6_addr_gen_mode", "num_tx_queues",
    "num_rx_queues", "gso_max_size", "gso_max_segs", "parentbus", "parentdev", "stats64", "vfinfo_list", "altnames",
]  # fmt: skip
LO = {"ifindex": 1, "ifname": "lo", "flags": ["UP"]}
END = " "  # iproute2 ends each token with one
TEXT = f"""\
1: lo: <UP> mtu 65536 qdisc noqueue state UNKNOWN
    link/loopback 00:00:00:00:00:00 brd 00:00:00:00:00:00 promiscuity 0
3: {PORT}@if9: <UP> mtu 9000 qdisc noqueue state UP mode DEFAULT group default qlen 1000
    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff link-netnsid 0 promiscuity 0  allmulti 0 maxmtu 65535{END}
    veth addrgenmode eui64 numtxqueues 2{END}
    altname enx0
"""


@pytest.fixture
def port(running):
    """The machine with two VFs, on whose interfaces iproute2 can be run."""
    running.node.ip = lambda *argv: json.dumps([LO, VETH]) if "-j" in argv else TEXT
    sriov.set_count(running, running.place(PORT), 2)
    return running


@pytest.mark.parametrize("argv", ["-j -d link", "-d -j link show", f"-d -j link show dev {PORT}", f"-j -d l ls {PORT}"])
def test_a_rail_is_told_as_a_function_with_vfs(port, argv):
    lo, row = json.loads(call(port, "ip", *argv.split()).stdout)
    assert lo == LO
    assert list(row) == KEYS
    assert (row["parentbus"], row["parentdev"]) == ("pci", port.place(PORT).pci)
    assert [vf["vf"] for vf in row["vfinfo_list"]] == [0, 1]


def test_without_vfs_the_list_is_there_and_empty(port):
    sriov.set_count(port, port.place(PORT), 0)
    assert json.loads(call(port, "ip", "-j", "link").stdout)[1]["vfinfo_list"] == []


def test_who_the_parent_is_takes_details(port):
    row = json.loads(call(port, "ip", "-j", "link").stdout)[1]
    assert "parentdev" not in row
    assert "parentdev" not in call(port, "ip", "link").stdout


def test_text_is_told_as_of_a_function_too(port):
    lines = call(port, "ip", "-d", "link").stdout.splitlines()
    assert lines[:2] == TEXT.splitlines()[:2]
    assert lines[2] == f"3: {PORT}: <UP> mtu 9000 qdisc noqueue state UP mode DEFAULT group default qlen 1000"
    assert lines[3] == (
        "    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff promiscuity 0  allmulti 0 maxmtu 65535 "
        f"addrgenmode eui64 numtxqueues 2 parentbus pci parentdev {port.place(PORT).pci} "
    )
    assert [line.split("link/")[0] for line in lines[4:6]] == ["    vf 0     ", "    vf 1     "]
    assert lines[6:] == ["    altname enx0"]


@pytest.mark.parametrize(
    "argv", ["-j addr", "link show eth0", "link show type veth", "-j link show nosuch", "link help"]
)
def test_what_is_about_no_rail_is_the_real_program_s(port, argv):
    assert call(port, "ip", *argv.split()).program.endswith(".real")


@pytest.mark.parametrize(
    "words",
    [
        "vf 0 vlan 4096", "vf 0 vlan x", "vf 0 vlan -1", "vf 0 vlan 10 qos x", "vf 0 vlan", "vf 0 qos 3", "vf 0",
        "vf x vlan 1", "vf", "vf 0 mac zz", "vf 0 mac 02:00", "vf 0 mac 02:00:00:00:00:00:11", "vf 0 mac",
        "vf 0 spoofchk maybe", "vf 0 trust x", "vf 0 state x", "vf 0 node_guid x", "vf 0 rate x", "vf 0 foo 1",
        "vf 0 port_guid 00:11:22:33:44:55:66:77:88", "vf 0 max_tx_rate x", "vf 0 vlan 1 foo", "vf 0 vlan 1 proto x",
    ],
)  # fmt: skip
def test_what_ip_does_not_take_it_refuses_itself_and_nothing_is_written(port, words):
    said = call(port, "ip", "link", "set", "dev", PORT, *words.split())
    assert said.program.endswith(".real")
    assert not port.writes._path.exists()


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ("vf 2 vlan 1", "Invalid argument"),
        ("vf -1 vlan 1", "Invalid argument"),
        ("vf 0 vlan 1 qos 8", "Invalid argument"),
        ("vf 0 mac 03:00:00:00:00:01", "Invalid argument"),
        ("vf 0 node_guid 00:11:22:33:44:55:66:77", "Operation not supported"),
    ],
)
def test_what_the_kernel_refuses_ends_with_2(port, words, text):
    said = call(port, "ip", "link", "set", "dev", PORT, *words.split())
    assert (said.rc, said.stderr) == (2, f"RTNETLINK answers: {text}\n")


def vf(port, index):
    return port.port(PORT).sriov.vfs[index]


def test_words_may_be_cut_short_and_several_vfs_set_at_once(port):
    words = "vf 0 ma 02:0:0:0:0:A vl 0x10 q 3 sp on vf 1 tru on st en max_tx_rate 100"
    assert call(port, "ip", "link", "set", PORT, *words.split()).rc == 0
    assert (vf(port, 0).mac, vf(port, 0).vlan, vf(port, 0).vlan_qos, vf(port, 0).spoofchk) == (
        "02:00:00:00:00:0a", 16, 3, True,
    )  # fmt: skip
    assert (vf(port, 1).trust, vf(port, 1).state, vf(port, 1).max_tx_mbps) == (True, "enable", 100)


def test_a_vlan_without_its_priority_has_priority_0(port):
    for words in ("vf 0 vlan 10 qos 3", "vf 0 vlan 10"):
        assert call(port, "ip", "link", "set", PORT, *words.split()).rc == 0
    assert vf(port, 0).vlan_qos == 0
