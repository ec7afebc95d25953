"""What a VF is and who uses it, whatever it is called; ports whose driver or identity forbids a step."""

from dataclasses import replace

import pytest

from gpufab_cli.module_utils import devices, vfs
from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.devices import Devices, RdmaDevice
from gpufab_cli.module_utils.host import HostError
from gpufab_cli.module_utils.identity import plain_guid, problem
from gpufab_cli.module_utils.snapshot import Snapshot
from gpufab_cli.module_utils.sriov import apply, plan, vfinfo
from gpufab_cli.module_utils.sriov.seen import PortSeen, SriovSeen, VfSeen
from gpufab_cli.module_utils.sriov.want import PortWant, SriovWant, VfWant
from tests.fakes import FakeHost, failed, ok
from tests.unit.core.roce_node import PCI, nic

PF = "0000:41:00.0"
FUNCTION = "/sys/bus/pci/devices/{}"
LINK = ("ip", "-d", "-j", "link", "show", "dev", "ens18np0")


def machine(names):
    """A PF and its VFs, with these netdev names."""
    host = FakeHost()
    for index, (name, address) in enumerate(zip(names, (PF, "0000:41:00.2", "0000:41:00.3"), strict=False)):
        folder = FUNCTION.format(address)
        host.files[f"{folder}/net/{name}/address"] = "x"
        host.files[f"/sys/class/net/{name}/address"] = f"02:00:00:00:00:0{index}\n"
        host.links[f"{folder}/driver"] = "../../../bus/pci/drivers/mlx5_core"
        if index:
            host.links[f"{folder}/physfn"] = f"../{PF}"
            host.links[f"{FUNCTION.format(PF)}/virtfn{index - 1}"] = f"../{address}"
    return host


@pytest.mark.parametrize(
    "names",
    [
        ("enp65s0f0np0", "enp65s0f0np0v0", "enp65s0f0np0v1"),
        ("lan", "enp2s0f1v0", "enp2s0f1v1"),
        ("ens1f0", "eth4", "eth5"),
        ("enp36s0f0", "enp37s17v4", "enp38s16f1v0"),
    ],
)
def test_a_vf_is_known_by_its_physical_function_never_by_its_name(names):
    host = machine(names)
    found = devices.gather(host)
    assert {entry.pci: entry.is_vf for entry in found.nics} == {PF: False, "0000:41:00.2": True, "0000:41:00.3": True}
    assert [(vf.index, vf.pci, vf.netdevs) for vf in vfs.read(host, PF)] == [
        (0, "0000:41:00.2", (names[1],)),
        (1, "0000:41:00.3", (names[2],)),
    ]


def test_vfs_come_in_the_order_of_their_numbers():
    host = FakeHost(links={f"{FUNCTION.format(PF)}/virtfn{i}": f"../0000:41:0{i // 8}.{i % 8}" for i in range(2, 12)})
    assert [vf.index for vf in vfs.read(host, PF)] == list(range(2, 12))


def test_what_is_on_top_of_a_vf_uses_it():
    host = machine(("p", "v0", "v1"))
    host.files["/sys/class/net/v1/upper_macvtap0/x"] = ""
    (first, second) = vfs.read(host, PF)
    assert vfs.users(host, first, vfs.Held({}, {})) == ()
    assert vfs.users(host, second, vfs.Held({}, {})) == ("macvtap0 is on top of v1 (VF 1)",)


def test_who_uses_a_vf_is_unknown_where_processes_cannot_be_looked_at():
    host = machine(("p", "v0"))
    assert vfs.users(host, vfs.read(host, PF)[0], Unknown("no root")) == Unknown("no root")


ROW = {"vf": 0, "link_type": "ether", "address": "02:00:00:00:01:01", "rate": {"max_tx": 1, "min_tx": 0}}


@pytest.mark.parametrize(
    ("row", "name", "expected"),
    [
        ({**ROW, "vlan_list": [{}]}, "vlan", 0),
        ({**ROW, "vlan_list": [{"vlan": 100, "qos": 3}]}, "vlan_qos", 3),
        ({**ROW, "vlan_list": [{"vlan": 100, "protocol": "802.1ad"}]}, "vlan", 100),
        ({**ROW, "trust": True}, "trust", True),
        (
            {**ROW, "link_type": "infiniband", "node guid": "02:00:00:00:00:00:00:11"},
            "node_guid",
            "02:00:00:00:00:00:00:11",
        ),
        ({**ROW, "link_type": "infiniband"}, "mac", ABSENT),
    ],
)
def test_vfinfo(row, name, expected):
    host = FakeHost(answers={LINK: ok([{"ifname": "ens18np0", "vfinfo_list": [row]}])})
    assert vfinfo.read(host, "ens18np0")[0][name] == expected


@pytest.mark.parametrize("answer", [failed("Device does not exist"), ok("[{]"), ok([]), ok([{"vfinfo_list": [{}]}])])
def test_vfinfo_of_no_known_release_is_unknown(answer):
    assert isinstance(vfinfo.read(FakeHost(answers={LINK: answer}), "ens18np0"), Unknown)


def test_what_the_driver_does_not_tell_is_unknown():
    host = FakeHost(answers={LINK: ok([{"ifname": "ens18np0", "vfinfo_list": [ROW]}])})
    assert isinstance(vfinfo.read(host, "ens18np0")[0]["trust"], Unknown)


NONE = PortSeen(numvfs=0, totalvfs=8, autoprobe=True, eswitch="legacy", admin_up=True)
VF = VfSeen("02:00:00:00:01:01", ABSENT, ABSENT, 0, 0, 0, 0, False, False, "auto", "0000:18:00.2", "mlx5_core")


def planned(seen, count=2, port=None, **changes):
    want = SriovWant((PortWant("compute/0", PCI, (VfWant(),) * count, **(port or {})),))
    snapshot = Snapshot("boot-1", 0, Devices((nic(**changes),)), {"sriov": SriovSeen({PCI: seen})})
    return plan.plan(snapshot, want)


@pytest.mark.parametrize(
    ("seen", "changes", "words"),
    [
        (replace(NONE, totalvfs=1), {}, "2 VFs are wanted, the firmware allows 1"),
        (replace(NONE, numvfs=ABSENT, totalvfs=ABSENT), {}, "SRIOV_EN"),
        (replace(NONE, eswitch=Unknown("no devlink")), {}, "cannot tell the e-switch mode: no devlink"),
        (NONE, {"netdevs": ()}, "has no netdev"),
        (NONE, {"carries": Unknown("ip: exit 1")}, "cannot tell what ens18np0 carries"),
    ],
)
def test_what_forbids_a_step(seen, changes, words):
    (step,) = planned(seen, **changes).steps
    assert words in step.blocked


def test_a_driver_without_an_e_switch_is_no_obstacle():
    assert planned(replace(NONE, eswitch=ABSENT)).steps[0].blocked == ""


def test_an_unknown_count_is_unknown_and_not_written_over():
    (step,) = planned(replace(NONE, numvfs=Unknown("EIO"))).steps
    assert step.unknowns


def test_an_unbound_vf_is_told_unless_that_is_wanted():
    seen = replace(NONE, numvfs=1, vfs=(replace(VF, driver=""),))
    assert [finding.code for finding in planned(seen, 1).findings] == ["sriov.vf-unbound"]
    assert planned(seen, 1, {"autoprobe": False}).findings == ()


@pytest.mark.parametrize(
    ("port", "changes", "code"),
    [
        ({"mac": "02:00:00:00:99:99"}, {}, "device.replaced"),
        ({"serial": "OTHER"}, {}, "device.replaced"),
        ({"psid": "MT_0000000001"}, {}, "device.psid"),
        ({"guid": "02:00:00:00:00:00:00:99"}, {}, "device.replaced"),
        ({}, {"is_vf": True}, "device.ambiguous"),
        ({}, {"netdevs": (), "rdma": ()}, "device.missing"),
    ],
)
def test_a_device_that_is_not_the_locks_is_left_alone(port, changes, code):
    if "guid" in port:
        changes = {"rdma": (RdmaDevice("mlx5_0", "0200:0003:0018:0000", "InfiniBand", "ACTIVE", ""),)}
    found = planned(NONE, port=port, **changes)
    assert found.steps == ()
    assert [finding.code for finding in found.findings] == [code]


def test_a_moved_infiniband_port_is_known_by_its_guid():
    rdma = RdmaDevice("mlx5_0", "0200:0003:0018:0000", "InfiniBand", "ACTIVE", "")
    elsewhere = nic("0000:9a:00.0", rdma=(rdma,))
    found = problem(Devices((elsewhere,)), PortWant("compute/0", PCI, ()), None, "02:00:00:03:00:18:00:00")
    assert (found.code, found.evidence) == ("device.moved", "02:00:00:03:00:18:00:00 is now at 0000:9a:00.0")


@pytest.mark.parametrize("text", ["0200:0003:0018:0000", "0x0200000300180000", "02:00:00:03:00:18:00:00"])
def test_a_guid_in_any_notation(text):
    assert plain_guid(text) == "02:00:00:03:00:18:00:00"


def test_a_driver_that_takes_the_count_and_makes_no_vf_is_found_out():
    folder = FUNCTION.format(PCI)
    host = FakeHost({f"{folder}/sriov_numvfs": "0\n", f"{folder}/sriov_drivers_autoprobe": "1\n"})
    (step,) = planned(NONE).steps
    with pytest.raises(HostError, match="2 VFs were written, 0 are there"):
        apply.apply(step, host)
    assert host.files[f"{folder}/sriov_drivers_autoprobe"] == "1\n"
