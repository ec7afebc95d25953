"""Configuration space read and set bit by bit; which bridges ACS counts at, and what it has to be there."""

from dataclasses import replace

import pytest

from gpufab_cli.lab.hardware import config_space
from gpufab_cli.lab.hardware.state import Fault
from gpufab_cli.module_utils.change import ABSENT, Impact, Unknown
from gpufab_cli.module_utils.converge import Status
from gpufab_cli.module_utils.devices import gather
from gpufab_cli.module_utils.numa import bridges, pci_config
from gpufab_cli.module_utils.numa.seen import BridgeSeen, NumaSeen
from gpufab_cli.module_utils.numa.want import NumaWant
from tests.machine import LabHost
from tests.unit.core.test_numa_irqs import codes, plan, run, want

PORT, BRIDGE, GPU_BRIDGE = "0000:18:00.0", "0000:17:00.0", "0000:17:02.0"
ON = ("SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd")


def acs(host, pci=BRIDGE):
    return config_space.flags(config_space.acs(host.hardware, pci))


def test_only_the_three_bits_of_the_read_request_are_written(tmp_path):
    host = LabHost(tmp_path, rails=1)
    before = host.read_bytes(f"/sys/bus/pci/devices/{PORT}/config")
    assert pci_config.max_read_request(host, PORT) == 512
    wish = want(host, irq=None, max_read_request=4096)
    assert run(host, wish).failures(False) == ()
    after = host.read_bytes(f"/sys/bus/pci/devices/{PORT}/config")
    assert [(a, b) for a, b in zip(before, after, strict=True) if a != b] == [(0x29, 0x59)]
    assert plan(host, wish).clean


@pytest.mark.parametrize(("size", "code"), [(128, 0), (256, 1), (512, 2), (1024, 3), (2048, 4), (4096, 5)])
def test_every_size_of_a_read_request(tmp_path, size, code):
    host = LabHost(tmp_path, rails=1)
    pci_config.set_max_read_request(host, PORT, size)
    assert host.hardware.state.numa.read_request[PORT] == code
    assert pci_config.max_read_request(host, PORT) == size


def test_without_root_nothing_is_known_and_nothing_passes(tmp_path):
    host = LabHost(tmp_path, rails=1)
    host._uid = 1000
    wish = want(host, irq=None, max_read_request=4096, use="bare-metal")
    found = plan(host, wish)
    assert {finding.unknown for finding in found.findings if finding.code == "numa.acs"} == {True}
    (change,) = next(step for step in found.steps if step.device == PORT).changes
    assert change.current == Unknown(f"{PORT}: only root may read its configuration space")
    statuses = {result.step.name: result.status for result in run(host, replace(wish, set_acs=True)).steps}
    assert (statuses["numa acs"], statuses["numa compute/0"]) == (Status.UNKNOWN, Status.UNKNOWN)


@pytest.mark.parametrize(
    ("data", "kind", "acs"),
    [
        (b"\xff" * 4096, Unknown, Unknown),  # it fell off the bus
        (bytes(64), Unknown, Unknown),
        (bytes(6) + b"\x10" + bytes(45) + b"\xc0" + bytes(75), Unknown, Unknown),  # read in part, with a list beyond it
        (bytes(256), "other", Unknown),  # no access to the extended space
        (bytes(4096), "other", ABSENT),
        (bytes(52) + b"\x40" + bytes(4043), "other", ABSENT),
        # a list of capabilities that runs in a circle
        (bytes(6) + b"\x10" + bytes(45) + b"\x40" + bytes(11) + b"\x01\x40" + bytes(4030), "other", ABSENT),
        (bytes(256) + b"\x01\x00\x01\x10" + bytes(3836), "other", ABSENT),
    ],
)
def test_configuration_spaces_that_are_not_what_they_should_be(tmp_path, monkeypatch, data, kind, acs):
    host = LabHost(tmp_path, rails=1)
    monkeypatch.setattr(host, "read_bytes", lambda _: data)
    found = pci_config.bridge(host, BRIDGE)
    assert found.kind == kind or isinstance(found.kind, Unknown)
    assert found.acs == acs or isinstance(found.acs, Unknown)


def test_kinds_of_ports(tmp_path):
    host = LabHost(tmp_path, rails=1)
    places = host.hardware.machine.ports[0].behind
    assert [pci_config.bridge(host, pci).kind for pci in places] == ["root-port", "upstream", "downstream"]
    assert pci_config.bridge(host, places[1]).acs is ABSENT


# ---- what counts, and what has to be there ---------------------------------------------------------------------------


def test_on_bare_metal_the_downstream_ports_between_gpu_and_nic_count_and_no_others(tmp_path):
    host = LabHost(tmp_path, rails=2)
    wish = want(host, irq=None, use="bare-metal")
    below = {place.behind[-1] for place in (*host.hardware.machine.ports, *host.hardware.machine.gpus)}
    assert set(bridges.judged(gather(host), wish.use, wish.addresses)) == below


def test_for_guests_every_bridge_above_counts(tmp_path):
    host = LabHost(tmp_path, rails=1)
    wish = want(host, irq=None, use="vms")
    places = (*host.hardware.machine.ports, *host.hardware.machine.gpus)
    assert set(bridges.judged(gather(host), wish.use, wish.addresses)) == {
        bridge for place in places for bridge in place.behind
    }


def test_where_gpu_and_nic_only_meet_in_the_cpu_no_bridge_counts(tmp_path):
    host = LabHost(tmp_path, "l40s-one-socket", rails=None, cpus=None)
    wish = want(host, irq=None, use="bare-metal")
    assert bridges.judged(gather(host), wish.use, wish.addresses) == ()


@pytest.mark.parametrize(
    ("found", "use", "wanted"),
    [
        (ON, "bare-metal", ("SrcValid",)),
        ((), "bare-metal", ()),
        (("SrcValid",), "bare-metal", ("SrcValid",)),
        (("TransBlk", "ReqRedir", "DirectTrans"), "bare-metal", ("TransBlk", "DirectTrans")),
        ((), "vms", ON),
        (("EgressCtrl", "DirectTrans"), "vms", (*ON, "EgressCtrl", "DirectTrans")),
        (ON, "vms", ON),
    ],
)
def test_what_acs_has_to_be(found, use, wanted):
    bridge = BridgeSeen("downstream", (*ON, "TransBlk", "EgressCtrl", "DirectTrans"), found)
    assert bridges.wanted(bridge, use) == wanted


def test_a_bridge_is_not_asked_for_what_it_cannot():
    assert bridges.wanted(BridgeSeen("root-port", ("SrcValid", "ReqRedir"), ()), "vms") == ("SrcValid", "ReqRedir")


@pytest.mark.parametrize(
    ("control", "code", "words"),
    [
        (0b0011101, "numa.acs", "ReqRedir CmpltRedir UpstreamFwd on"),
        (0b0000000, None, ""),
        (0b0000001, "numa.acs-source", "SrcValid on: it redirects nothing"),
    ],
)
def test_report_34_what_is_left_on_is_told_by_what_it_does(tmp_path, control, code, words):
    host = LabHost(tmp_path, rails=1)
    judged = want(host, irq=None, use="bare-metal")
    host.hardware.state.numa.acs = {BRIDGE: control, GPU_BRIDGE: 0}
    found = [(f.code, f.path[0], f.evidence) for f in plan(host, judged).findings]
    assert found == ([(code, BRIDGE, words)] if code else [])
    assert all(step.name.startswith("persist") for step in plan(host, judged).steps)


def test_it_is_set_with_consent_kept_at_boot_and_refused_while_a_guest_relies_on_it(tmp_path):
    host = LabHost(tmp_path, rails=1)
    wish = want(host, irq=None, use="bare-metal", set_acs=True)
    assert run(host, wish).steps[-1].status is Status.REFUSED
    assert run(host, wish, allow=frozenset({Impact.TRAFFIC}), busy_ok=True).steps[-1].status is Status.MADE
    assert {acs(host), acs(host, GPU_BRIDGE)} == {
        "SrcValid+ TransBlk- ReqRedir- CmpltRedir- UpstreamFwd- EgressCtrl- DirectTrans-"
    }
    assert host.hardware.state.numa.acs.keys() == {BRIDGE, GPU_BRIDGE}
    host.boot()
    host.links["/sys/bus/pci/drivers/vfio-pci/0000:18:00.2"] = "../../../../devices/x"
    real = host.names
    host.names = lambda path: ("0000:18:00.2", "bind") if path.endswith("/vfio-pci") else real(path)
    result = run(host, wish, allow=frozenset({Impact.TRAFFIC}), busy_ok=True).steps[-1]
    assert (result.status, result.reason) == (
        Status.BLOCKED,
        "0000:18:00.2 is bound to vfio-pci: a guest relies on ACS",
    )


def test_a_write_that_fails_halfway_takes_all_bridges_back(tmp_path):
    host = LabHost(tmp_path, rails=1)
    wish = want(host, irq=None, use="bare-metal", set_acs=True)
    run(host, NumaWant(wish.ports))
    host.hardware.set_fault(Fault("fail-at-write", "", 2))
    result = run(host, wish, allow=frozenset({Impact.TRAFFIC}), busy_ok=True).steps[-1]
    assert result.status is Status.FAILED
    assert "ReqRedir+" in acs(host)
    assert "ReqRedir+" in acs(host, GPU_BRIDGE)


@pytest.mark.parametrize(
    ("use", "domain", "code"),
    [
        ("bare-metal", "", None),
        ("bare-metal", "identity", None),
        ("bare-metal", "DMA-FQ", "numa.iommu-translated"),
        ("vms", "", "numa.iommu-off"),
        ("vms", "DMA", None),
    ],
)
def test_the_iommu_is_judged_by_who_uses_the_devices(tmp_path, use, domain, code):
    host = LabHost(tmp_path, rails=1)
    host.hardware.state.numa.domain = domain
    host.hardware.restructure()
    found = {name for name, _ in codes(host, want(host, irq=None, use=use)) if name.startswith("numa.iommu")}
    assert found == ({code} if code else set())


def test_devices_whose_place_is_not_known_are_not_passed_over(tmp_path):
    host = LabHost(tmp_path, rails=1)
    devices = replace(gather(host), gpus=tuple(replace(gpu, above=()) for gpu in gather(host).gpus))
    _, found = bridges.plan(devices, NumaSeen(), want(host, use="bare-metal"))
    assert [(f.code, f.unknown) for f in found] == [("numa.acs", True)]
