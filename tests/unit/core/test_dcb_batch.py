"""Many shows by one dcb: each answer is whose it is, and a batch that does not answer for each is asked one by one."""

import json

import pytest

from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.host import ForbiddenQueryError, Host, Output
from gpufab_cli.module_utils.queries import BATCHES, batch
from gpufab_cli.module_utils.roce import dcb
from tests.fakes import FakeHost, failed, ok

from .test_dcb import ETS, PFC_3

BATCH = BATCHES[0][0]
TWO = {"ens1": False, "ens2": False}
GOOD = {"app": '{"dscp_prio":[[26,3]]}', "ets": ETS, "pfc": PFC_3, "dcbx": '{"host":true,"ieee":true}'}
NOT_SUPPORTED = "Attribute read: Operation not supported"


def singles(netdev, answers=GOOD):
    return {("dcb", "-j", what, "show", "dev", netdev): ok(text) for what, text in answers.items()}


def whole(objects, errors=""):
    """As dcb prints a batch: objects with commas between, one newline; reasons and numbers of lines on stderr."""
    return Output(1 if errors else 0, ",".join(objects) + "\n", errors)


def test_all_ports_are_asked_by_one_program_and_each_is_as_if_asked_alone():
    asked = []
    host = FakeHost(answers={BATCH: lambda stdin: asked.append(stdin) or whole([*GOOD.values()] * 2)})
    found = dcb.read(host, TWO)
    assert asked == ["".join(f"{what} show dev {dev}\n" for dev in TWO for what in dcb.OBJECTS)]
    alone = dcb.read(FakeHost(answers=singles("ens1")), {"ens1": False})["ens1"]
    assert found == {"ens1": alone, "ens2": alone}
    assert (alone.pfc, alone.dscp, alone.dcbx) == ((3,), ((26, 3),), "host")


def test_buffers_are_asked_for_where_they_are_wanted():
    sizes = '{"prio_buffer":[0,0,0,1,0,0,0,0],"buffer_size":[10,20,0,0,0,0,0,0],"total_size":99}'
    host = FakeHost(answers={BATCH: whole([*GOOD.values(), *GOOD.values(), sizes])})
    found = dcb.read(host, {"ens1": False, "ens2": True})
    assert isinstance(found["ens1"].buffer_bytes, Unknown)
    assert found["ens2"].buffer_bytes == (10, 20, 0, 0, 0, 0, 0, 0)


def test_a_failure_is_that_of_its_own_port_and_setting():
    errors = f"{NOT_SUPPORTED}\nCommand failed -:2\nUnknown DCBX bit 0x20.\nAttribute read: No such device\n"
    errors += "Command failed -:5\n"
    objects = [GOOD["app"], GOOD["pfc"], GOOD["dcbx"], GOOD["ets"], GOOD["pfc"], GOOD["dcbx"]]
    found = dcb.read(FakeHost(answers={BATCH: whole(objects, errors)}), TWO)
    assert found["ens1"].tc_bw == Unknown(f"dcb ets show dev ens1: exit 1: {NOT_SUPPORTED}")
    assert found["ens2"].dscp == Unknown("dcb app show dev ens2: exit 1: Attribute read: No such device")
    assert (found["ens1"].dscp, found["ens2"].tc_bw[3]) == (((26, 3),), 50)
    assert (found["ens1"].pfc, found["ens2"].pfc) == ((3,), (3,))


def test_a_driver_without_dcbx_leaves_the_settings_to_the_host_in_a_batch_too():
    objects = [GOOD[what] for what in ("app", "ets", "pfc")]
    host = FakeHost(answers={BATCH: whole(objects, f"{NOT_SUPPORTED}\nCommand failed -:4\n")})
    assert dcb.read(host, {"ens1": False})["ens1"].dcbx == "host"


@pytest.mark.parametrize(
    "output",
    [
        failed("Unknown option.\n"),
        Output(0, "", ""),
        whole([*GOOD.values()]),  # half of the answers
        whole([*GOOD.values()] * 2 + [PFC_3]),
        whole([*GOOD.values()] * 2, f"{NOT_SUPPORTED}\nCommand failed -:3\n"),  # nine answers for eight
        whole([*GOOD.values(), ETS, PFC_3, "{}"], f"{NOT_SUPPORTED}\nCommand failed -:9\n"),
        Output(-6, ",".join(GOOD.values()), ""),
        Output(0, whole([*GOOD.values()] * 2).stdout[:-5], ""),
        Output(0, "[" * 100_000, ""),
        Unknown("dcb: stdin is closed"),
    ],
)
def test_a_batch_that_does_not_answer_for_each_is_asked_one_by_one(output):
    host = FakeHost(answers={BATCH: output, **singles("ens1"), **singles("ens2", {**GOOD, "app": "{}"})})
    found = dcb.read(host, TWO)
    assert (found["ens1"].dscp, found["ens2"].dscp) == (((26, 3),), ())
    assert found["ens2"].pfc == (3,)


def test_no_ports_ask_nothing():
    assert dcb.read(FakeHost(), {}) == {}


@pytest.mark.parametrize(
    "commands",
    [
        [],
        [("dcb", "-j", "pfc", "set", "dev", "ens1", "prio-pfc", "3:on")],
        [("dcb", "-j", "pfc", "show", "dev", "ens1"), ("dcb", "-j", "pfc", "show", "dev", "ens1\npfc set dev ens1")],
        [("dcb", "-j", "pfc", "show", "dev", "ens1"), ("ethtool", "-a", "ens1")],
        [("ethtool", "-a", "ens1")],
    ],
)
def test_only_shows_go_into_a_batch(commands, tmp_path):
    assert batch(commands) is None
    with pytest.raises(ForbiddenQueryError):
        Host(str(tmp_path)).batch(commands)


def test_the_lines_of_a_batch():
    commands = [("dcb", "-j", "pfc", "show", "dev", "ens1"), ("dcb", "-j", "ets", "show", "dev", "ens2")]
    assert batch(commands) == (BATCH, "pfc show dev ens1\nets show dev ens2\n")


@pytest.mark.process
def test_what_a_batch_prints_is_read_through_the_real_door(tmp_path, monkeypatch):
    """A dcb that answers with its own stdin, and one that hangs, which is not asked again."""
    tool = tmp_path / "dcb"
    tool.write_text("#!/bin/sh\nprintf '%s' \"$*: \"\ncat\n")
    tool.chmod(0o755)
    monkeypatch.setattr("gpufab_cli.module_utils.programs.SEARCH_PATH", str(tmp_path) + ":/usr/bin:/bin")
    command = ("dcb", "-j", "pfc", "show", "dev", "ens1")
    assert Host("/").batch([command]).stdout == "-j -f -b -: pfc show dev ens1\n"
    tool.write_text("#!/bin/sh\nexec sleep 60\n")
    monkeypatch.setattr("gpufab_cli.module_utils.host.QUERY_SECONDS", 0.2)
    host = Host("/")
    assert isinstance(host.batch([command]), Unknown)
    tool.write_text("#!/bin/sh\necho '{}'\n")
    assert host.query(*command) == Unknown("dcb -j -f -b - did not answer within 0 s")


def test_what_the_real_dcb_would_print_is_what_a_batch_of_fakes_prints():
    host = FakeHost(answers={**singles("ens1"), ("dcb", "-j", "ets", "show", "dev", "ens1"): failed(NOT_SUPPORTED)})
    output = host.batch([("dcb", "-j", what, "show", "dev", "ens1") for what in dcb.OBJECTS])
    assert json.loads(f"[{output.stdout}]")[1] == json.loads(PFC_3)
    assert output.stderr == f"{NOT_SUPPORTED}\nCommand failed -:2\n"
