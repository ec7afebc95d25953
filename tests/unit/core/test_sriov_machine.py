"""The sriov feature on emulated machines, Ethernet and InfiniBand: counts, addresses, users, failures, reboots."""

from dataclasses import replace

import pytest

from gpufab_cli.lab.hardware import sriov
from gpufab_cli.lab.hardware.drift import DRIFTS
from gpufab_cli.lab.hardware.state import Fault
from gpufab_cli.module_utils import desired, planning
from gpufab_cli.module_utils.change import Impact
from gpufab_cli.module_utils.converge import Order, Status, converge
from gpufab_cli.module_utils.features import FEATURES, WANT_TYPES
from gpufab_cli.module_utils.host import HostError
from gpufab_cli.module_utils.restore import EARLY, LATE, Phase, restore
from gpufab_cli.module_utils.sriov.want import PortWant, SriovWant, VfWant
from tests.fakes import start
from tests.machine import LabHost

FEATURE = FEATURES["sriov"]
ALL = Order(allow=frozenset(Impact))
PCI, PF = "0000:18:00.0", "enp24s0np0"


def vf(kind, index):
    """What a VF is told on a machine type."""
    if kind == "hgx-h100":
        return VfWant(mac=f"02:aa:00:00:00:{index:02x}", trust=True, spoofchk=False, vlan=100 + index, max_tx_mbps=1000)
    guid = f"02:aa:00:00:00:00:00:{index:02x}"
    return VfWant(node_guid=guid, port_guid=guid.replace("02:aa", "02:ab"), link_state="auto")


def wish(count, kind="hgx-h100", **port):
    vfs = tuple(vf(kind, index) for index in range(count))
    return SriovWant((PortWant(**{"rail": "compute/0", "pci": PCI, "vfs": vfs, **port}),))


@pytest.fixture(params=["hgx-h100", "hgx-h100-ib"])
def host(request, tmp_path):
    host = LabHost(tmp_path, request.param)
    host.kind = request.param
    return host


@pytest.fixture
def ethernet(tmp_path):
    return LabHost(tmp_path)


def place(host):
    return host.hardware.machine.ports[0]


def vfs(host):
    return host.hardware.port(place(host).netdev).sriov.vfs


def ran(outcome):
    return {result.step.name: (result.status.value, result.reason) for result in outcome.steps}


def paths(outcome):
    return {change.path for result in outcome.steps for change in result.step.changes}


def drift(host, want):
    snapshot = planning.take(host, {"sriov": FEATURE}, {"sriov": want})
    return {change.path for step in planning.plan(FEATURE, snapshot, want).steps for change in step.changes}


def settle(host, want, order=ALL):
    """Audit, dry run and run agree; a second run and audit have nothing to say."""
    with host.quiet():
        audited = drift(host, want)
        checked = paths(converge(host, FEATURE, want, replace(order, check=True)))
    made = converge(host, FEATURE, want, order)
    assert audited == checked == paths(made)
    assert {result.status for result in made.steps} <= {Status.MADE}, ran(made)
    again = converge(host, FEATURE, want, order)
    assert (again.steps, again.findings, drift(host, want)) == ((), (), set())
    return made


def test_the_count_goes_up_and_down_and_survives_a_reboot(host):
    for count in (4, 8, 2, 0, 3):
        settle(host, wish(count, host.kind))
        assert len(vfs(host)) == count
    before = [(v.mac, v.node_guid, v.port_guid, v.own_guid) for v in vfs(host)]
    host.boot()
    assert vfs(host) == []
    assert restore(host, EARLY)
    assert [(v.mac, v.node_guid, v.port_guid, v.own_guid) for v in vfs(host)] == before
    assert drift(host, wish(3, host.kind)) == set()


def test_an_early_restore_that_is_started_again_leaves_a_device_in_use_alone(ethernet):
    settle(ethernet, wish(2))
    ethernet.boot()
    start(ethernet, 77, "python", "/dev/infiniband/uverbs0", uid=1000)
    assert not restore(ethernet, EARLY)
    assert vfs(ethernet) == []


def test_every_vf_has_its_driver_and_a_guid_of_its_own(host):
    settle(host, wish(4, host.kind))
    guids = [v.own_guid for v in vfs(host)]
    assert len(set(guids)) == 4
    assert "00:00:00:00:00:00:00:00" not in guids
    assert [v.driver for v in vfs(host)] == ["mlx5_core"] * 4
    assert host.hardware.port(place(host).netdev).sriov.autoprobe


def test_an_equal_count_is_not_written(ethernet):
    settle(ethernet, wish(8))
    ethernet.writes.clear()
    assert converge(ethernet, FEATURE, wish(8), ALL).steps == ()
    assert not any("sriov_numvfs" in str(write) for write in ethernet.writes)


def test_a_count_is_changed_by_way_of_zero(ethernet):
    settle(ethernet, wish(4))
    ethernet.writes.clear()
    settle(ethernet, wish(8))
    path = f"/sys/bus/pci/devices/{PCI}/sriov_numvfs"
    assert [write[1] for write in ethernet.writes if write[0] == path] == ["0", "8"]


def test_vfs_that_stay_keep_what_nobody_manages(ethernet):
    settle(ethernet, SriovWant((PortWant("compute/0", PCI, (VfWant(),) * 2),)))
    sriov.set_vf(ethernet.hardware, place(ethernet), 1, {"vlan": 77, "trust": True})
    settle(ethernet, SriovWant((PortWant("compute/0", PCI, (VfWant(),) * 4),)))
    assert [(v.vlan, v.trust) for v in vfs(ethernet)] == [(0, False), (77, True), (0, False), (0, False)]


def test_no_vfs_are_taken_away_without_consent(ethernet):
    settle(ethernet, wish(4))
    order = Order(allow=frozenset({Impact.TRAFFIC, Impact.LINK_FLAP}))
    assert ran(converge(ethernet, FEATURE, wish(8), order))["sriov compute/0"] == ("refused", "needs --allow vf-loss")
    assert len(vfs(ethernet)) == 4


def test_a_count_above_the_total_is_not_begun(ethernet):
    outcome = converge(ethernet, FEATURE, wish(17), ALL)
    assert ran(outcome)["sriov compute/0"] == (
        "blocked",
        "17 VFs are wanted, the firmware allows 16 (NUM_OF_VFS)",
    )
    assert vfs(ethernet) == []


@pytest.mark.parametrize("allowed", [8, 16, 18])
def test_eight_are_made_where_the_firmware_holds_more(ethernet, allowed):
    sriov.card_of(ethernet.hardware, place(ethernet)).current["NUM_OF_VFS"] = allowed
    ethernet.hardware.restructure()
    settle(ethernet, wish(8))
    assert len(vfs(ethernet)) == 8


def test_without_sriov_in_firmware_nothing_is_begun_and_none_wanted_is_fine(ethernet):
    sriov.card_of(ethernet.hardware, place(ethernet)).current["SRIOV_EN"] = 0
    ethernet.hardware.restructure()
    status, reason = ran(converge(ethernet, FEATURE, wish(8), ALL))["sriov compute/0"]
    assert status == "blocked"
    assert "SRIOV_EN" in reason
    settle(ethernet, wish(0))


def hold(host, path):
    """A process holds a device file open."""
    start(host, 42, "qemu-system-x86", path)


def to_guest(host, index):
    hardware = host.hardware
    sriov.unbind(hardware, place(host), index, "mlx5_core")
    sriov.edit(hardware, place(host), lambda state: setattr(state.vfs[index], "override", "vfio-pci"))
    sriov.bind(hardware, place(host), index, "vfio-pci")


def test_a_vf_that_a_guest_has_is_not_taken_away(ethernet):
    settle(ethernet, wish(4))
    to_guest(ethernet, 2)
    assert ran(converge(ethernet, FEATURE, wish(8), replace(ALL, check=True)))["sriov compute/0"][0] == "would-make"
    hold(ethernet, f"/dev/vfio/{sriov.group(ethernet.hardware, place(ethernet), 2)}")
    for order in (ALL, replace(ALL, check=True)):
        status, reason = ran(converge(ethernet, FEATURE, wish(8), order))["sriov compute/0"]
        assert status == "busy"
        assert reason == "qemu-system-x86 (process 42) holds VF 2 (0000:18:00.4)"
    assert len(vfs(ethernet)) == 4
    settle(ethernet, wish(8), replace(ALL, busy_ok=True))


def test_a_vf_in_a_container_is_not_taken_away(ethernet):
    settle(ethernet, wish(2))
    del ethernet.hardware.node.interfaces["enp24s0v1"]
    status, reason = ran(converge(ethernet, FEATURE, wish(0), ALL))["sriov compute/0"]
    assert (status, reason) == ("busy", "the netdev of VF 1 (0000:18:00.3) is in another network namespace")


def test_a_verbs_user_of_a_vf_is_named(ethernet):
    settle(ethernet, wish(2))
    number = vfs(ethernet)[0].rdma
    hold(ethernet, f"/dev/infiniband/uverbs{number}")
    status, reason = ran(converge(ethernet, FEATURE, wish(0), ALL))["sriov compute/0"]
    assert status == "busy"
    assert "VF 0 (0000:18:00.2)" in reason


@pytest.mark.parametrize(
    ("fault", "errno", "words"),
    [
        ("enospc-msix", "No space left on device", "no MSI-X vectors left"),
        ("enomem-bios", "Cannot allocate memory", "not enough MMIO resources for SR-IOV"),
    ],
)
def test_what_the_kernel_says_is_quoted_and_the_old_vfs_come_back(ethernet, fault, errno, words):
    settle(ethernet, wish(4))
    before = [replace(v, rdma=-1) for v in vfs(ethernet)]
    ethernet.hardware.set_fault(Fault(fault, "", 0))
    status, reason = ran(converge(ethernet, FEATURE, wish(8), ALL))["sriov compute/0"]
    assert status == "failed"
    assert errno in reason
    assert words in reason
    assert vfs(ethernet) == []  # the fault keeps the old ones away as well, and the reason says so
    assert "could not be undone" in reason
    ethernet.hardware.clear_fault(fault)
    settle(ethernet, wish(4))
    assert [replace(v, rdma=-1) for v in vfs(ethernet)] == before


def test_a_failure_half_way_leaves_the_vfs_as_they_were(ethernet):
    settle(ethernet, wish(4))
    before = [replace(v, rdma=-1) for v in vfs(ethernet)]
    refused = wish(8)
    bad = replace(refused.ports[0].vfs[7], mac="01:00:00:00:00:00")  # multicast: the kernel refuses it
    port = replace(refused.ports[0], vfs=(*refused.ports[0].vfs[:7], bad))
    status, reason = ran(converge(ethernet, FEATURE, SriovWant((port,)), ALL))["sriov compute/0"]
    assert (status, reason.endswith("; undone")) == ("failed", True), reason
    assert [replace(v, rdma=-1) for v in vfs(ethernet)] == before


def test_lost_vfs_are_drift_and_come_back_with_their_addresses(host):
    settle(host, wish(3, host.kind))
    before = [(v.mac, v.node_guid, v.port_guid, v.own_guid) for v in vfs(host)]
    DRIFTS["driver-reload"](host.hardware, place(host).netdev)
    assert (PCI, "numvfs") in drift(host, wish(3, host.kind))
    assert restore(host, Phase("device", device=PCI))
    assert [(v.mac, v.node_guid, v.port_guid, v.own_guid) for v in vfs(host)] == before


def refuse(host, word, pci):
    """The kernel refuses to bind a VF in one way or in several; what else is written it takes."""
    original = host.set

    def refusing(path, value):
        if path.endswith(word) and value == pci:
            raise HostError(f"cannot write {path}: Cannot allocate memory")
        original(path, value)

    host.set = refusing


def moved(count):
    vfs = tuple(replace(vf("hgx-h100", index), mac=f"02:bb:00:00:00:{index:02x}") for index in range(count))
    return SriovWant((PortWant("compute/0", PCI, vfs, autoprobe=False),))


def without_driver(host, index):
    sriov.unbind(host.hardware, place(host), index, "mlx5_core")


def bound(host):
    return [v.driver for v in vfs(host)]


def test_a_vf_that_its_driver_refuses_is_probed(ethernet):
    settle(ethernet, wish(3))
    refuse(ethernet, "mlx5_core/bind", "0000:18:00.3")
    settle(ethernet, SriovWant((replace(moved(3).ports[0], autoprobe=True),)))
    assert bound(ethernet) == ["mlx5_core"] * 3


def test_a_vf_that_lost_its_driver_has_it_again_when_the_step_is_undone(ethernet):
    settle(ethernet, wish(3))
    without_driver(ethernet, 2)  # nobody wants a driver there: the undo leaves it alone
    tries = []
    original = ethernet.set

    def refusing(path, value):
        if value == "0000:18:00.3" and path.endswith(("mlx5_core/bind", "drivers_probe")):
            tries.append(path)
            if len(tries) < 3:
                raise HostError(f"cannot write {path}: Cannot allocate memory")
        original(path, value)

    ethernet.set = refusing
    status, reason = ran(converge(ethernet, FEATURE, moved(3), ALL))["sriov compute/0"]
    assert (status, reason.endswith("; undone")) == ("failed", True), reason
    assert "0000:18:00.3 is left without its driver mlx5_core" in reason
    assert bound(ethernet) == ["mlx5_core", "mlx5_core", ""]
    assert [v.mac for v in vfs(ethernet)] == ["02:aa:00:00:00:00", "02:aa:00:00:00:01", "02:aa:00:00:00:02"]


def test_a_vf_that_stays_without_its_driver_is_told(ethernet):
    settle(ethernet, wish(2))
    refuse(ethernet, ("mlx5_core/bind", "drivers_probe"), "0000:18:00.3")
    status, reason = ran(converge(ethernet, FEATURE, moved(2), ALL))["sriov compute/0"]
    assert status == "failed"
    assert "could not be undone: 0000:18:00.3 is left without its driver mlx5_core" in reason
    assert bound(ethernet) == ["mlx5_core", ""]


def test_a_restore_takes_no_vfs_away(ethernet):
    settle(ethernet, wish(4))
    sriov.set_count(ethernet.hardware, place(ethernet), 0)
    sriov.set_count(ethernet.hardware, place(ethernet), 2)
    assert not restore(ethernet, LATE)
    assert len(vfs(ethernet)) == 2


def test_a_changed_address_is_taken_over_by_the_driver(host):
    settle(host, wish(2, host.kind))
    key = "mac" if host.hardware.machine.ethernet else "node_guid"
    sriov.set_vf(host.hardware, place(host), 1, {key: "02:ff:00:00:00:09" + ("" if key == "mac" else ":00:00")})
    assert drift(host, wish(2, host.kind)) == {(PCI, "vf1", key)}
    before = vfs(host)[1].own_guid
    settle(host, wish(2, host.kind))
    assert vfs(host)[1].own_guid == before
    assert vfs(host)[1].driver == "mlx5_core"


def test_an_ethernet_vf_bound_before_it_had_a_mac_gets_a_guid(ethernet):
    sriov.set_count(ethernet.hardware, place(ethernet), 2)  # as by hand: probed at once, without addresses
    for index, want in enumerate(wish(2).ports[0].vfs):
        sriov.set_vf(ethernet.hardware, place(ethernet), index, {"mac": want.mac, "trust": True, "vlan": want.vlan})
        sriov.set_vf(ethernet.hardware, place(ethernet), index, {"max_tx_mbps": 1000})
    assert drift(ethernet, wish(2)) == {(PCI, f"vf{i}", "rdma_guid") for i in range(2)} | {
        (desired.desired_path("sriov"),)
    }
    settle(ethernet, wish(2))
    assert [v.own_guid for v in vfs(ethernet)] == [f"02:aa:00:ff:fe:00:00:0{i}" for i in range(2)]


def test_vfs_may_be_left_without_drivers(ethernet):
    settle(ethernet, wish(2, autoprobe=False))
    assert [v.driver for v in vfs(ethernet)] == ["", ""]
    assert [v.mac for v in vfs(ethernet)] == ["02:aa:00:00:00:00", "02:aa:00:00:00:01"]
    settle(ethernet, wish(4, autoprobe=False))


def test_switchdev_is_left_alone(ethernet):
    sriov.edit(ethernet.hardware, place(ethernet), lambda state: setattr(state, "eswitch", "switchdev"))
    outcome = converge(ethernet, FEATURE, wish(4), ALL)
    assert [finding.code for finding in outcome.findings] == ["sriov.switchdev"]
    assert vfs(ethernet) == []


def test_vfs_that_are_down_below_a_port_that_is_up_are_found(tmp_path):
    host = LabHost(tmp_path, "hgx-h100-ib")
    want = SriovWant((PortWant("compute/0", PCI, (VfWant(),) * 2),))
    outcome = converge(host, FEATURE, want, ALL)
    found = converge(host, FEATURE, want, ALL).findings
    assert [result.status for result in outcome.steps] == [Status.MADE, Status.MADE]
    assert {finding.code for finding in found} == {"sriov.vf-down"}
    settle(host, wish(2, host.hardware.machine.name))


def test_management_ports_take_consent_of_their_own(ethernet):
    hardware = ethernet.hardware
    settle(ethernet, wish(1))
    original = ethernet._answer

    def routed(argv):
        if argv[:3] == ("ip", "-j", "-4"):
            from tests.fakes import ok

            return ok([{"dst": "default", "dev": "enp24s0v0"}])
        return original(argv)

    ethernet._answer = routed
    order = Order(allow=frozenset(Impact) - {Impact.MANAGEMENT_PORT})
    assert ran(converge(ethernet, FEATURE, wish(0), order))["sriov compute/0"] == (
        "refused",
        "needs --allow management-port",
    )
    assert hardware.port(PF).sriov.vfs


def test_network_managers_leave_vfs_alone_where_asked(ethernet):
    rule = "/etc/udev/rules.d/81-gpufab-vf-unmanaged.rules"
    settle(ethernet, replace(wish(1), unmanaged=True))
    assert b'ENV{NM_UNMANAGED}="1"' in ethernet.files[rule]
    settle(ethernet, replace(wish(1), unmanaged=False))
    assert rule not in ethernet.files


def test_a_wish_survives_its_file(ethernet):
    settle(ethernet, wish(2))
    assert list(desired.load(ethernet, WANT_TYPES)) == [("sriov", wish(2))]
