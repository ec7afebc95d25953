"""The mlnx_qos backend: every release variant is read, anything else is unknown, and each setting is its own call."""

import pytest

from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.host import HostError, Output
from gpufab_cli.module_utils.roce import mlnx_qos
from gpufab_cli.module_utils.roce.backend import Ets
from tests.fakes import FakeHost, ok

from .mlnx_qos_outputs import DEFAULT_MAP, LLDPAD, NO_BUFFERS, NO_RATES, NUMBERS, VLAN, class_lines, dscp_lines, port

CALL = ("mlnx_qos", "-a", "-i", "ens1")
ETS = ("ets", "ets", "ets", "ets", "ets", "ets", "strict", "ets")
SHARES = (50, 0, 0, 50, 0, 0, 0, 0)


def read(answer):
    host = FakeHost(answers={CALL: answer if isinstance(answer, Output) else ok(answer)})
    return mlnx_qos.read(host, {"ens1": True})["ens1"]


def test_the_newest_release():
    found = read(port())
    assert (found.dcbx, found.trust, found.dscp) == ("host", "dscp", DEFAULT_MAP)
    assert (found.pfc, found.cable_m) == ((3,), 7)
    assert found.prio_buffer == (0, 0, 0, 1, 0, 0, 0, 0)
    assert found.buffer_bytes == (262016, 0, 0, 0, 0, 0, 0, 0)
    assert (found.prio_tc, found.tc_tsa, found.tc_bw) == ((1, 0, 2, 3, 4, 5, 6, 7), ("vendor",) * 8, (0,) * 8)


def test_pcp_has_no_map_and_that_is_known():
    found = read(port(trust="pcp"))
    assert (found.trust, found.dscp) == ("pcp", ())


@pytest.mark.parametrize(
    ("text", "name", "value"),
    [
        (port(dcbx="Firmware"), "dcbx", "firmware"),
        (port(before=LLDPAD), "dcbx", "host"),
        (port(buffers="1,2,3,4,5,6,7,8,"), "buffer_bytes", (1, 2, 3, 4, 5, 6, 7, 8)),
        (port(buffers="1,2,3,4,5,6,7,8,total_size=99"), "buffer_bytes", (1, 2, 3, 4, 5, 6, 7, 8)),
        (port(cable=10), "cable_m", 10),
        (port(dscps=dscp_lines(DEFAULT_MAP, descending=False)), "dscp", DEFAULT_MAP),
        (port(after_map="default priority:\n\tprio 0\n"), "pfc", (3,)),
        # A DSCP that was set anew comes first, and more than eight take a second line.
        (
            port(
                dscps=dscp_lines([(d, 5 if d == 26 else p) for d, p in DEFAULT_MAP if d != 47]) + "\tprio:5 dscp:47,\n"
            ),
            "dscp",
            tuple((d, 5 if d == 26 else p) for d, p in DEFAULT_MAP),
        ),
        (port(classes=class_lines(NUMBERS, ETS, SHARES)), "tc_bw", SHARES),
        (port(classes=class_lines(NUMBERS, ETS, SHARES, rate="50.0 Gbps")), "tc_tsa", ETS),
        (port(classes=class_lines(NUMBERS, ETS, SHARES, order=(3, 1, 0, 2, 7, 6, 5, 4))), "prio_tc", NUMBERS),
        (port(classes=class_lines((0,) * 8, ETS, SHARES)), "prio_tc", (0,) * 8),
    ],
)
def test_what_else_releases_print(text, name, value):
    assert getattr(read(text), name) == value


def test_ofed_4_says_less_and_what_it_does_not_say_is_unknown():
    found = read(port(dcbx=None, buffers=None, prio_buffer=None, cable=10))
    unknown = {name for name, value in vars(found).items() if isinstance(value, Unknown)}
    assert unknown == {"dcbx", "buffer_bytes", "prio_buffer"}


def test_without_buffer_commands_the_rest_is_read():
    found = read(port(before=NO_BUFFERS, buffers=None, prio_buffer=None))
    assert (found.pfc, found.trust) == ((3,), "dscp")
    assert isinstance(found.prio_buffer, Unknown)


def test_classes_without_numbers_may_be_any_class():
    text = port(before=NO_RATES, classes=class_lines(NUMBERS, ETS, SHARES, numbered=False))
    found = read(text)
    assert found.pfc == (3,)
    assert isinstance(found.prio_tc, Unknown)
    assert isinstance(found.tc_bw, Unknown)


def test_a_virtual_device_is_unknown_in_everything_and_never_pfc_off():
    found = read(Output(1, VLAN, ""))
    assert all(isinstance(value, Unknown) for value in vars(found).values())
    assert found.pfc == Unknown("mlnx_qos: ens1 has no DCB at all: is it a virtual device above a port?")


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Interface name is required\n",
        port(trust="none"),
        port().replace("prio:3 dscp", "prio:9 dscp"),
        port(dscps="\tprio:3 dscp:26,\n"),
        port(dscps=dscp_lines([*DEFAULT_MAP, (26, 4)])),
        port().replace("enabled     0", "enabled     2"),
        port() + port(),
        port(classes=class_lines(NUMBERS, ETS, SHARES, order=(0, 1, 2))),
        port(classes=class_lines(NUMBERS, ETS, SHARES).replace("bw: 50%", "bw: 500%")),
        port(classes=class_lines(NUMBERS, ETS, SHARES).replace("\t priority:  4\n", "")),
        port(classes=class_lines(NUMBERS, ETS, SHARES) + "\t priority:  4\n"),
        "\x00\x7fELF segmentation fault",
    ],
)
def test_anything_else_leaves_something_unknown_and_raises_nothing(text):
    found = read(text)
    assert any(isinstance(value, Unknown) for value in vars(found).values())


def test_a_missing_tool_is_unknown():
    assert mlnx_qos.read(FakeHost(), {"ens1": True})["ens1"].pfc == Unknown("mlnx_qos is not installed")


def calls(act):
    fake = FakeHost()
    fake._answer = lambda argv: Output(0, "", "")
    act(fake)
    return [" ".join(argv[3:]) for argv in fake.writes]


def test_trust_and_map_are_two_calls_trust_first():
    wanted = tuple((dscp, 3 if dscp == 26 else 0) for dscp in range(64))
    first, second = calls(lambda fake: mlnx_qos.set_dscp(fake, "ens1", (), wanted))
    assert first == "--trust dscp"
    assert second.startswith("--dscp2prio set,8,0 ")
    assert "set,26,3" not in second  # DSCP 26 is there already: 26 >> 3 is 3


def test_of_a_map_that_is_there_only_what_differs_is_set():
    wanted = tuple((dscp, 5 if dscp == 26 else prio) for dscp, prio in DEFAULT_MAP)
    assert calls(lambda fake: mlnx_qos.set_dscp(fake, "ens1", DEFAULT_MAP, wanted)) == ["--dscp2prio set,26,5"]
    assert calls(lambda fake: mlnx_qos.set_dscp(fake, "ens1", DEFAULT_MAP, DEFAULT_MAP)) == []
    assert calls(lambda fake: mlnx_qos.set_dscp(fake, "ens1", DEFAULT_MAP, ())) == ["--trust pcp"]


def test_single_dscps_cannot_be_removed_as_some_releases_ignore_it():
    with pytest.raises(HostError, match="cannot remove single DSCPs"):
        mlnx_qos.set_dscp(FakeHost(), "ens1", DEFAULT_MAP, ((26, 3),))


@pytest.mark.parametrize(
    ("act", "words"),
    [
        (lambda fake: mlnx_qos.set_pfc(fake, "ens1", (3, 4)), "-f 0,0,0,1,1,0,0,0"),
        (
            lambda fake: mlnx_qos.set_ets(fake, "ens1", Ets(NUMBERS, ETS, SHARES)),
            "-p 0,1,2,3,4,5,6,7 -s ets,ets,ets,ets,ets,ets,strict,ets -t 50,0,0,50,0,0,0,0",
        ),
        (lambda fake: mlnx_qos.set_owner(fake, "ens1", "host"), "-d os"),
        (lambda fake: mlnx_qos.set_owner(fake, "ens1", "firmware"), "-d fw"),
        (lambda fake: mlnx_qos.set_cable(fake, "ens1", 5), "--cable_len 5"),
        (lambda fake: mlnx_qos.set_prio_buffer(fake, "ens1", NUMBERS), "--prio2buffer 0,1,2,3,4,5,6,7"),
        (lambda fake: mlnx_qos.set_buffer_bytes(fake, "ens1", (1,) * 8), "--buffer_size 1,1,1,1,1,1,1,1"),
    ],
)
def test_each_setting_is_a_call_of_its_own(act, words):
    assert calls(act) == [words]
