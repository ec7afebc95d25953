"""Each tool against a transcript: a session on a machine fresh from the factory."""

import json
import re

import pytest

from gpufab_cli.lab.hardware import sriov
from gpufab_cli.lab.hardware.state import Fault
from gpufab_cli.lab.hardware.tools import dispatch
from gpufab_cli.lab.hardware.tools.answer import Request
from tests.unit.lab import transcript
from tests.unit.lab.conftest import PORT


def call(hw, *argv, uid=0):
    return dispatch.answer(hw, Request(argv[0], tuple(argv[1:]), uid, 1))


@pytest.mark.parametrize("session", transcript.every(), ids=lambda session: session.name)
def test_transcript(running, session):
    for exchange in session.exchanges:
        said = call(running, *exchange.argv, uid=exchange.uid)
        assert (said.stdout, said.stderr, said.rc, said.program) == (
            exchange.stdout,
            exchange.stderr,
            exchange.rc,
            "",
        ), str(exchange)


@pytest.mark.parametrize(
    "argv",
    [
        "dcb -V",
        "dcb pfc help",
        "dcb pfc show",
        "dcb pfc show dev lo",
        "dcb pfc show dev eth0",
        "dcb foo show dev enp24s0np0",
        "dcb pfc frob dev enp24s0np0",
        "ethtool -i eth0",
        "ethtool --version",
        "ethtool -A enp24s0np0 rx maybe",
        "rdma help",
        "devlink help",
        "ip -j addr",
    ],
)
def test_what_needs_no_hardware_is_left_to_the_real_program(running, argv):
    said = call(running, *argv.split())
    assert said.program.endswith(".real")
    assert said.stdout == said.stderr == ""


def test_a_name_nobody_knows(running):
    assert call(running, "mlxburn").rc == 127


def test_a_lying_tool_changes_nothing_and_is_logged(running):
    running.set_fault(Fault("tool-lies", "dcb"))
    assert call(running, "dcb", "pfc", "set", "dev", PORT, "prio-pfc", "3:on").rc == 0
    assert not any(running.port(PORT).pfc)
    assert running.port(PORT).link_downs == 0
    assert "prio-pfc" in running.writes._path.read_text()


def test_garbage_is_no_output_of_any_release(running):
    running.set_fault(Fault("garbage-output", "rdma"))
    said = call(running, "rdma", "-j", "link")
    assert said.rc == 0
    assert not said.stdout.startswith("[")


def test_a_fault_of_one_tool_leaves_the_others_alone(running):
    running.set_fault(Fault("garbage-output", "rdma"))
    assert call(running, "ethtool", "-a", PORT).stdout.startswith("Pause parameters")


def test_a_hanging_tool_ends_when_its_caller_is_gone(running):
    running.set_fault(Fault("tool-hangs", "dcb"))
    lives = iter([True, False])
    said = dispatch.answer(running, Request("dcb", ("pfc", "show", "dev", PORT), 0, 1, lambda: next(lives)))
    assert said.rc == 0


def test_a_failing_write_is_told_as_each_tool_tells_it(running):
    for argv, text in (
        (("dcb", "app", "add", "dev", PORT, "dscp-prio", "26:3"), "Attribute write: Input/output error\n"),
        (("ethtool", "-A", PORT, "rx", "off"), "netlink error: Input/output error\n"),
        (("ip", "link", "set", PORT, "mtu", "1500"), "RTNETLINK answers: Input/output error\n"),
    ):
        running.set_fault(Fault("fail-at-write", "", 1))
        said = call(running, *argv)
        assert said.stderr == text
        assert said.rc != 0
    assert running.port(PORT).dscp == {}


@pytest.mark.parametrize(("option", "separator"), [((), "\n"), (("-o",), "\\")])
def test_ip_link_shows_vfs_where_they_belong(running, option, separator):
    sriov.set_count(running, running.place(PORT), 2)
    sriov.set_vf(
        running, running.place(PORT), 1, {"mac": "02:00:00:00:99:01", "vlan": 100, "vlan_qos": 3, "trust": True}
    )
    lines = [f"3: {PORT}: <UP> mtu 9000", "    link/ether 02:00:00:00:00:01 brd ff:ff:ff:ff:ff:ff", "    altname x"]
    running.node.ip = lambda *argv: separator.join(lines) + "\n"
    said = call(running, "ip", *option, "link", "show", "dev", PORT).stdout
    assert said.rstrip("\n").split(separator) == [
        *lines[:2],
        "    vf 0     link/ether 00:00:00:00:00:00 brd ff:ff:ff:ff:ff:ff, spoof checking off, link-state auto, "
        "trust off, query_rss off",
        "    vf 1     link/ether 02:00:00:00:99:01 brd ff:ff:ff:ff:ff:ff, vlan 100, qos 3, spoof checking off, "
        "link-state auto, trust on, query_rss off",
        lines[2],
    ]


def test_dcb_takes_a_batch_on_stdin(running):
    rest = "ets show dev eth0\nets show dev nosuch\nfoo show dev eth0\n"
    lines = f"pfc show dev {PORT}\n\n# none\ndcbx show dev {PORT}\n{rest}app show dev {PORT}\n"
    said = dispatch.answer(running, Request("dcb", ("-j", "-f", "-b", "-"), 0, 1, stdin=lines))
    assert (said.rc, said.stdout.count("\n")) == (1, 1)
    alone = [call(running, "dcb", "-j", kind, "show", "dev", PORT).stdout for kind in ("pfc", "dcbx", "app")]
    assert json.loads(f"[{said.stdout}]") == [json.loads(text) for text in alone]
    assert said.stderr.splitlines() == [
        "Attribute read: Operation not supported",
        "Command failed -:5",
        "Attribute read: No such device",
        "Command failed -:6",
        'Object "foo" is unknown',
        "Command failed -:7",
    ]


def test_without_force_a_batch_of_dcb_ends_at_the_first_failure(running):
    lines = f"pfc show dev eth0\npfc set dev {PORT} prio-pfc 3:on\n"
    said = dispatch.answer(running, Request("dcb", ("-b", "-"), 0, 1, stdin=lines))
    assert (said.rc, said.stderr.splitlines()[-1]) == (1, "Command failed -:1")
    assert not any(running.port(PORT).pfc)
    said = dispatch.answer(running, Request("dcb", ("-b", "-"), 0, 1, stdin=lines.partition("\n")[2]))
    assert (said.rc, said.stdout, running.port(PORT).pfc[3]) == (0, "", True)


def test_errors_rise_at_each_look_while_the_fault_lasts(running):
    def dropped():
        return re.search(r"rx_discards_phy: (\d+)", call(running, "ethtool", "-S", PORT).stdout)[1]

    assert [dropped(), dropped()] == ["0", "0"]
    running.set_fault(Fault("errors-rising", PORT))
    assert [dropped(), dropped()] == ["1", "2"]
    running.clear_fault("errors-rising")
    assert dropped() == "2"
