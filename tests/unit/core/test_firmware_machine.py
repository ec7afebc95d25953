"""The firmware feature on emulated machines: three truths, consent to resets, and resets that bring nothing."""

from dataclasses import replace

import pytest

from gpufab_cli.lab.hardware import sriov
from gpufab_cli.lab.hardware.state import Fault
from gpufab_cli.module_utils import devices, planning
from gpufab_cli.module_utils.change import Impact, Unknown, Where
from gpufab_cli.module_utils.converge import Order, Status, converge
from gpufab_cli.module_utils.features import FEATURES
from gpufab_cli.module_utils.firmware.cards import cards, locked_serial
from gpufab_cli.module_utils.firmware.want import FirmwareWant, PortWant
from tests.machine import LabHost

FEATURE = FEATURES["firmware"]
ALL = Order(allow=frozenset(Impact))
QUIET = Order()
PCI, SECOND = "0000:18:00.0", "0000:40:00.0"
RESET = "firmware-reset compute/0"


def wish(versions=None, **parameters):
    return FirmwareWant((PortWant("compute/0", PCI, parameters),), versions)


@pytest.fixture
def host(tmp_path):
    return LabHost(tmp_path)


def card(host, rail=0):
    return sriov.card_of(host.hardware, host.hardware.machine.ports[rail])


def plan(host, want):
    return planning.plan(FEATURE, planning.take(host, {"firmware": FEATURE}, {"firmware": want}), want)


def ran(outcome):
    return {result.step.name: (result.status.value, result.reason) for result in outcome.steps}


def codes(found):
    return [finding.code for finding in found.findings]


def test_nothing_to_do_where_next_boot_and_running_are_as_wanted(host):
    assert plan(host, wish(NUM_OF_VFS="16", SRIOV_EN="True", ATS_ENABLED="0")).clean


def test_writing_for_the_next_boot_takes_no_consent_and_the_reset_does(host):
    outcome = converge(host, FEATURE, wish(NUM_OF_VFS="8"), QUIET)
    assert ran(outcome) == {
        "firmware compute/0": ("made", ""),
        RESET: ("refused", "needs --allow firmware-reset,link-flap,traffic"),
    }
    assert (card(host).next, card(host).current) == ({"NUM_OF_VFS": 8}, {})


def test_what_waits_is_pending_once_and_is_not_written_again(host):
    converge(host, FEATURE, wish(NUM_OF_VFS="8"), QUIET)
    found = plan(host, wish(NUM_OF_VFS="8"))
    (item,) = found.pending
    assert (item.path, item.running, item.next_boot) == ((PCI, "NUM_OF_VFS"), "16", "8")
    assert item.waits_for is Impact.FIRMWARE_RESET
    assert [(step.name, step.changes[0].where) for step in found.steps] == [(RESET, Where.RUNNING)]
    before = len(host.writes)
    converge(host, FEATURE, wish(NUM_OF_VFS="8"), QUIET)
    assert not any("set" in write for write in host.writes[before:])


def test_consent_brings_it_in_one_run(host):
    outcome = converge(host, FEATURE, wish(NUM_OF_VFS="32", CNP_DSCP_P1="26", LINK_TYPE_P1="ETH"), ALL)
    assert {result.status for result in outcome.steps} == {Status.MADE}
    assert card(host).current == {"NUM_OF_VFS": 32, "CNP_DSCP_P1": 26}
    assert plan(host, wish(NUM_OF_VFS="32", CNP_DSCP_P1="26", LINK_TYPE_P1="ETH")).clean


def test_a_reboot_brings_it_too(host):
    converge(host, FEATURE, wish(NUM_OF_VFS="8"), QUIET)
    host.boot()
    assert plan(host, wish(NUM_OF_VFS="8")).clean


@pytest.mark.parametrize("held", [16, 18, 128])
def test_eight_is_not_sixteen_nor_eighteen(host, held):
    card(host).current = card(host).next = {"NUM_OF_VFS": held}
    assert plan(host, wish(NUM_OF_VFS="8")).steps


def test_a_reset_takes_vfs_away_first_and_only_with_consent(host):
    place = host.hardware.machine.ports[0]
    sriov.set_count(host.hardware, place, 4)
    without = replace(ALL, allow=ALL.allow - {Impact.VF_LOSS})
    outcome = converge(host, FEATURE, wish(NUM_OF_VFS="32"), without)
    assert ran(outcome)[RESET] == ("refused", "needs --allow vf-loss")
    assert converge(host, FEATURE, wish(NUM_OF_VFS="32"), ALL).steps[-1].status is Status.MADE
    assert host.hardware.port(place.netdev).sriov.vfs == []


def test_hidden_parameters_need_a_second_reset_and_are_not_unsupported_before(host):
    want = wish(ADVANCED_PCI_SETTINGS="True", MAX_ACC_OUT_READ="44")
    first = converge(host, FEATURE, want, ALL)
    assert codes(first) == []
    assert card(host).current == {"ADVANCED_PCI_SETTINGS": 1}
    assert {step.name for step in plan(host, want).steps} == {"firmware compute/0", RESET}
    converge(host, FEATURE, want, ALL)
    assert card(host).current == {"ADVANCED_PCI_SETTINGS": 1, "MAX_ACC_OUT_READ": 44}
    assert plan(host, want).clean


def test_a_parameter_that_the_card_lacks_is_a_finding_and_the_others_are_set(host):
    outcome = converge(host, FEATURE, wish(MAX_ACC_OUT_READ="44", NO_SUCH_THING="1", NUM_OF_VFS="8"), ALL)
    assert codes(outcome) == ["firmware.unsupported"] * 2
    assert card(host).current == {"NUM_OF_VFS": 8}


def test_a_change_that_a_reset_does_not_bring_fails_and_is_not_tried_again(host):
    host.hardware.set_fault(Fault("firmware-not-applied", "", 0))
    want = wish(NUM_OF_VFS="8")
    status, reason = ran(converge(host, FEATURE, want, ALL))[RESET]
    assert status == "failed"
    assert reason.startswith("did not become current, firmware reset or cold boot needed")
    resets = sum("reset" in write for write in host.writes)
    for _ in range(3):
        outcome = converge(host, FEATURE, want, ALL)
        assert (outcome.steps, outcome.pending) == ((), ())
        assert codes(outcome) == ["node.reset-without-effect"]
        assert "cold boot needed" in outcome.findings[0].evidence
        host.boot()
    assert sum("reset" in write for write in host.writes) == resets
    changed = converge(host, FEATURE, wish(NUM_OF_VFS="12"), ALL)
    assert RESET in ran(changed)  # another wish may be tried once more


def test_a_reboot_that_brought_nothing_is_told_and_no_reboot_is_asked_for(host):
    converge(host, FEATURE, wish(NUM_OF_VFS="8"), QUIET)
    host.hardware.set_fault(Fault("firmware-not-applied", "", 0))
    host.boot()
    outcome = converge(host, FEATURE, wish(NUM_OF_VFS="8"), QUIET)
    assert codes(outcome) == ["node.reset-without-effect"]
    assert outcome.findings[0].evidence == "still 16 after a reboot: firmware reset or cold boot needed"
    assert outcome.pending == ()
    assert all(Impact.REBOOT not in result.step.impact for result in outcome.steps)


def test_a_card_that_cannot_be_opened_is_unknown_and_the_others_go_on(host):
    host.hardware.set_fault(Fault("nic-locked-down", "enp24s0np0", 0))
    ports = (PortWant("compute/0", PCI, {"NUM_OF_VFS": "8"}), PortWant("compute/1", SECOND, {"NUM_OF_VFS": "8"}))
    outcome = converge(host, FEATURE, FirmwareWant(ports), ALL)
    status, reason = ran(outcome)["firmware compute/0"]
    assert status == "unknown"
    assert "Failed to open the device (kernel lockdown: none [integrity]" in reason
    assert ran(outcome)["firmware compute/1"] == ("made", "")
    assert card(host, 1).current == {"NUM_OF_VFS": 8}
    assert outcome.failures(check=False)
    assert not outcome.failures(check=True)


def test_an_open_lockdown_file_is_no_lockdown(host):
    host.hardware.set_fault(Fault("nic-locked-down", "enp24s0np0", 0))
    host._uid = 0
    original = host.read_bytes
    host.read_bytes = lambda path: b"[none] integrity\n" if path.endswith("/lockdown") else original(path)
    (change,) = plan(host, wish(NUM_OF_VFS="8")).steps[0].changes
    assert "lockdown" not in change.current.reason


def test_without_any_tool_it_is_unknown(host):
    original = host.exists
    host.exists = lambda path: "config" not in path and original(path)
    (change,) = plan(host, wish(NUM_OF_VFS="8")).steps[0].changes
    assert change.current == Unknown("neither mlxconfig (MFT) nor mstconfig (mstflint) is installed")


def test_mstconfig_where_there_is_no_mlxconfig(host):
    original = host.exists
    host.exists = lambda path: "/mlx" not in path and original(path)
    converge(host, FEATURE, wish(NUM_OF_VFS="8"), ALL)
    assert card(host).current == {"NUM_OF_VFS": 8}
    assert any(write[0] == "mstconfig" for write in host.writes)
    assert any(write[0] == "mstfwreset" for write in host.writes)


def test_the_version_is_compared_by_psid_and_never_burned(host):
    nic = host.hardware.machine.nic
    assert plan(host, wish({nic.psid: nic.firmware})).clean
    assert plan(host, wish({"MT_0000000001": "1.2.3"})).clean
    found = plan(host, wish({nic.psid: "28.43.2026"}))
    assert codes(found) == ["firmware.version"]
    assert found.steps == ()
    assert not found.findings[0].unknown


def test_a_version_that_nobody_tells_is_unknown_and_no_drift(host, monkeypatch):
    monkeypatch.setattr(devices, "_devlink_info", lambda _: Unknown("devlink is not installed"))
    (finding,) = plan(host, wish({"MT_0000000001": "1.2.3"})).findings
    assert (finding.code, finding.unknown) == ("firmware.version", True)


def dual(first, second, serials=("SN1", "SN1"), second_pci="0000:18:00.1"):
    return (
        PortWant("compute/0", "0000:18:00.0", first, serial=serials[0]),
        PortWant("compute/1", second_pci, second, serial=serials[1]),
    )


def test_the_ports_of_a_card_are_merged():
    (found,) = cards(dual({"A": "1", "CNP_DSCP_P1": "48"}, {"A": "1", "CNP_DSCP_P2": "48"}), locked_serial)
    assert found.parameters == {"A": "1", "CNP_DSCP_P1": "48", "CNP_DSCP_P2": "48"}
    assert (found.pci, found.rails, found.conflicts) == ("0000:18:00.0", "compute/0+compute/1", {})


def test_wishes_that_conflict_are_named():
    (found,) = cards(dual({"NUM_OF_VFS": "8"}, {"NUM_OF_VFS": "4"}), locked_serial)
    assert found.conflicts == {"NUM_OF_VFS": "compute/0 wants 8, compute/1 wants 4"}


@pytest.mark.parametrize(
    ("serials", "second_pci", "count"),
    [
        (("SN1", "SN1"), "0001:19:00.1", 1),  # one card, its functions in two PCI domains
        (("SN1", "SN2"), "0000:18:00.1", 2),
        ((None, None), "0000:18:00.1", 1),
        ((None, None), "0000:19:00.1", 2),
    ],
)
def test_a_card_is_known_by_its_serial_number_and_else_by_its_slot(serials, second_pci, count):
    assert len(cards(dual({}, {}, serials, second_pci), locked_serial)) == count
