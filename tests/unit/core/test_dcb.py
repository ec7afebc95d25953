"""The dcb backend: what every known release prints, and nothing else, is a value."""

import pytest

from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.host import HostError, Output
from gpufab_cli.module_utils.roce import dcb
from tests.fakes import FakeHost, failed, ok


def read(reader, netdev="ens1", *, buffers=False):
    return dcb.read(reader, {netdev: buffers})[netdev]


def host(what, answer):
    return FakeHost(answers={("dcb", "-j", what, "show", "dev", "ens1"): answer})


PFC_3 = '{"pfc_cap":8,"macsec_bypass":false,"delay":7,"prio_pfc":[false,false,false,true,false,false,false,false]}'
ETS = (
    '{"willing":false,"ets_cap":8,"cbs":false,"tc_bw":[50,0,0,50,0,0,0,0],"pg_bw":[0,0,0,0,0,0,0,0],'
    '"tc_tsa":["ets","ets","ets","ets","ets","ets","strict","ets"],"prio_tc":[0,1,2,3,4,5,6,7],'
    '"reco_tc_bw":[0,0,0,0,0,0,0,0],"reco_prio_tc":[0,0,0,0,0,0,0,0]}'
)


def test_pfc():
    assert read(host("pfc", ok(PFC_3))).pfc == (3,)


def test_app_reads_past_the_third_element_that_iproute2_prints():
    assert read(host("app", ok('{"dscp_prio":[[48,6," "],[26,3," "]]}'))).dscp == ((26, 3), (48, 6))


def test_an_empty_app_table_is_empty_and_not_unknown():
    assert read(host("app", ok("{}"))).dscp == ()


def test_two_priorities_of_one_dscp_are_both_seen():
    assert read(host("app", ok('{"dscp_prio":[[26,3," "],[26,4," "]]}'))).dscp == ((26, 3), (26, 4))


def test_ets():
    found = read(host("ets", ok(ETS)))
    assert (found.prio_tc, found.tc_tsa[6], found.tc_bw[3]) == ((0, 1, 2, 3, 4, 5, 6, 7), "strict", 50)


@pytest.mark.parametrize(
    "text",
    ["", "\n", "null", "[]", "{}", '{"prio_pfc":[true]}', '{"prio_pfc":[0,0,0,1,0,0,0,0]}', "pfc-cap 8", "[" * 99999],
)
def test_anything_else_is_unknown(text):
    found = read(host("pfc", Output(0, text, ""))).pfc
    assert isinstance(found, Unknown)
    assert "no known release" in found.reason


@pytest.mark.parametrize(
    "text", ["[]", "null", '{"dscp_prio":[["AF31",3]]}', '{"dscp_prio":[[26]]}', '{"dscp_prio":3}']
)
def test_a_strange_app_table_is_unknown_and_never_empty(text):
    assert isinstance(read(host("app", ok(text))).dscp, Unknown)


def test_a_device_without_dcb_says_why():
    assert isinstance(read(host("pfc", failed("Attribute read: Operation not supported\n")), "vlan401").pfc, Unknown)
    found = read(host("pfc", failed("Attribute read: Operation not supported\n"))).pfc
    assert found == Unknown("dcb pfc show dev ens1: exit 1: Attribute read: Operation not supported")


def test_a_missing_tool_is_unknown():
    assert read(FakeHost()).pfc == Unknown("dcb is not installed")


def writes(current, desired):
    fake = FakeHost()
    fake._answer = lambda argv: Output(0, "", "")
    dcb.set_dscp(fake, "ens1", current, desired)
    return [" ".join(argv[2:3] + argv[6:]) for argv in fake.writes]


@pytest.mark.parametrize(
    ("current", "desired", "commands"),
    [
        ((), ((26, 3), (48, 6)), ["replace 26:3 48:6"]),
        (((26, 4), (48, 6)), ((26, 3), (48, 6)), ["replace 26:3"]),
        (((26, 3), (48, 6)), (), ["del 26:3 48:6"]),
        (((10, 1), (26, 4)), ((26, 3),), ["replace 26:3", "del 10:1"]),
        (((26, 3), (26, 4)), ((26, 3),), ["replace 26:3"]),
        (((26, 3),), ((26, 3),), []),
    ],
)
def test_dscp_map_changes_only_what_differs(current, desired, commands):
    assert writes(current, desired) == commands


@pytest.mark.parametrize(
    ("text", "owner"),
    [
        ('{"host":true,"ieee":true}', "host"),
        ('{"lld_managed":true,"ieee":true}', "firmware"),
        ('{"host":true,"lld_managed":true}', "firmware"),
        ("{}", "firmware"),
    ],
)
def test_who_runs_dcbx(text, owner):
    assert read(host("dcbx", ok(text))).dcbx == owner


def test_a_driver_without_dcbx_leaves_the_settings_to_the_host():
    answer = failed("Attribute read: Operation not supported\n")
    assert read(host("dcbx", answer)).dcbx == "host"


@pytest.mark.parametrize("answer", [ok("[]"), ok('{"x":true}'), failed("Attribute not found: x\n")])
def test_a_driver_that_does_not_say_who_runs_dcbx_is_unknown(answer):
    assert isinstance(read(host("dcbx", answer)).dcbx, Unknown)


def test_cable_and_buffers():
    sizes = '{"prio_buffer":[0,0,0,1,0,0,0,0],"buffer_size":[10,20,0,0,0,0,0,0],"total_size":99}'
    fake = host("pfc", ok(PFC_3))
    fake.answers["dcb", "-j", "buffer", "show", "dev", "ens1"] = ok(sizes)
    found = read(fake, "ens1", buffers=True)
    assert (found.cable_m, found.prio_buffer[3], found.buffer_bytes[1]) == (7, 1, 20)
    assert isinstance(read(fake).buffer_bytes, Unknown)


def sets(act):
    fake = FakeHost()
    fake._answer = lambda argv: Output(0, "", "")
    act(fake)
    return [" ".join(argv[1:]) for argv in fake.writes]


def test_what_is_written_besides():
    assert sets(lambda fake: dcb.set_cable(fake, "ens1", 5)) == ["pfc set dev ens1 delay 5"]
    assert sets(lambda fake: dcb.set_owner(fake, "ens1", "host")) == ["dcbx set dev ens1 host ieee"]
    eight = "0:1 1:1 2:1 3:1 4:1 5:1 6:1 7:1"
    assert sets(lambda fake: dcb.set_prio_buffer(fake, "ens1", (1,) * 8)) == [
        f"buffer set dev ens1 prio-buffer {eight}"
    ]
    assert sets(lambda fake: dcb.set_buffer_bytes(fake, "ens1", (1,) * 8)) == [
        f"buffer set dev ens1 buffer-size {eight}"
    ]
    with pytest.raises(HostError, match="back to the firmware"):
        dcb.set_owner(FakeHost(), "ens1", "firmware")


def test_pfc_names_every_priority():
    fake = FakeHost(answers={("dcb", "pfc", "set", "dev", "ens1", "prio-pfc", "all:off", "3:on"): ok("")})
    dcb.set_pfc(fake, "ens1", (3,))
    assert len(fake.writes) == 1
