"""A lock is drafted from what nodes have, never guessed."""

from dataclasses import replace

import pytest

from gpufab_cli.errors import GpufabError, SpecErrors
from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.devices import Devices, Gpu, Netdev, Nic, RdmaDevice
from gpufab_cli.spec.draft import draft, lock_host, wanted_hosts
from gpufab_cli.spec.lock import Lock
from tests.fabrics import lock, spec

GPU = Gpu(pci="0000:1b:00.0", vendor="0x10de", device="0x2330", driver="nvidia", numa_node=0)


def nic(number, speed=400_000, host=1, **changes):
    netdev = Netdev(f"eth{number}", f"02:00:00:00:{host:02x}:{number:02x}", 9000, "up", speed, (), ())
    rdma = RdmaDevice(f"mlx5_{number}", "0", "Ethernet", "ACTIVE", "400 Gb/sec")
    base = Nic(
        pci=f"0000:{number + 1}8:00.0",
        driver="mlx5_core",
        vendor="0x15b3",
        device="0x1021",
        numa_node=0,
        is_vf=False,
        serial=f"SN{number}",
        psid="MT_0000000838",
        fw_version="28.39.1002",
        netdevs=(netdev,),
        rdma=(rdma,),
    )
    return replace(base, **changes)


def locked(*nics):
    fabric = spec()
    return lock_host(fabric, fabric.hosts[0], Devices(nics, (GPU,)))


def test_rails_follow_pci_addresses():
    found = locked(nic(1), nic(0))
    assert [port.pci for port in found.ports.values()] == ["0000:18:00.0", "0000:28:00.0"]
    assert list(found.ports) == ["compute/0", "compute/1"]
    assert found.ports["compute/0"].mac == "02:00:00:00:01:00"
    assert [gpu.pci for gpu in found.gpus] == ["0000:1b:00.0"]


@pytest.mark.parametrize(
    "other",
    [
        nic(2, is_vf=True),
        nic(2, speed=25_000),
        nic(2, driver="ixgbe"),
        nic(2, rdma=()),
        nic(2, rdma=(RdmaDevice("ibp1", "0", "InfiniBand", "ACTIVE", "400 Gb/sec"),)),
    ],
    ids=["virtual function", "another speed", "another driver", "no RDMA", "InfiniBand"],
)
def test_what_is_no_port_of_the_network_is_passed_over(other):
    assert len(locked(nic(0), nic(1), other).ports) == 2


def test_a_port_that_is_down_may_be_a_rail():
    down = nic(1, netdevs=(replace(nic(1).netdevs[0], speed_mbps=Unknown("link down")),))
    assert locked(nic(0), down).ports["compute/1"].pci == "0000:28:00.0"


@pytest.mark.parametrize("count", [0, 1, 3])
def test_too_few_or_too_many_are_an_error_that_lists_what_is_there(count):
    with pytest.raises(GpufabError, match=f"gpu01: {count} ports fit network compute, its profile has 2") as caught:
        locked(*(nic(number) for number in range(count)))
    assert ("0000:18:00.0 mlx5_core Ethernet 400G" if count else "no NIC at all") in caught.value.hint


def test_what_a_device_does_not_tell_is_left_out():
    found = locked(nic(0, serial=Unknown("no devlink"), psid=ABSENT), nic(1, netdevs=()))
    assert found.ports["compute/0"].serial is None
    assert found.ports["compute/0"].psid is None
    assert found.ports["compute/1"].mac is None


def placed(number, switch, gpu=False):
    above = (f"pci0000:{switch}0", f"0000:{switch}0:01.0", f"0000:{switch}1:00.0", f"0000:{switch}2:0{int(gpu)}.0")
    if gpu:
        return replace(GPU, pci=f"0000:{switch}{number}:00.0", above=above)
    return replace(nic(number), above=above)


GPUS = (placed(4, 3, gpu=True), placed(5, 7, gpu=True))


def ports(*nics, gpus=GPUS, before=None):
    found = lock_host(spec(), spec().hosts[0], Devices(nics, gpus), before)
    return {rail: port.pci for rail, port in found.ports.items()}


def test_rails_are_numbered_by_their_gpus():
    """The first GPU's port has the higher address."""
    assert ports(placed(0, 7), placed(1, 3)) == {"compute/0": "0000:28:00.0", "compute/1": "0000:18:00.0"}


def test_of_more_ports_than_the_profile_has_those_next_to_gpus_are_taken():
    found = ports(placed(0, 9), placed(1, 3), placed(2, 7), placed(3, 9))
    assert found == {"compute/0": "0000:28:00.0", "compute/1": "0000:38:00.0"}


def test_an_update_renumbers_nothing_while_a_gpu_is_missing():
    nics = placed(0, 7), placed(1, 3)
    before = lock_host(spec(), spec().hosts[0], Devices(nics, GPUS))
    kept = {rail: port.pci for rail, port in before.ports.items()}
    assert ports(*nics, gpus=GPUS[1:], before=before) == kept
    assert ports(*nics, gpus=(), before=before) == kept


def test_an_update_with_a_port_elsewhere_numbers_anew():
    before = lock_host(spec(), spec().hosts[0], Devices((placed(0, 7), placed(1, 3)), GPUS))
    found = ports(placed(2, 7), placed(1, 3), before=before)
    assert found == {"compute/0": "0000:28:00.0", "compute/1": "0000:38:00.0"}


def test_garbage_of_a_device_is_an_error_not_a_lock():
    with pytest.raises(GpufabError, match="gpu01: a device reports"):
        locked(nic(0, serial="{{ x }}"), nic(1))


def test_locked_hosts_stay_as_they_are():
    fabric = spec()
    assert wanted_hosts(fabric, lock()) == ()
    assert [host.name for host in wanted_hosts(fabric, lock(), update=["gpu02"])] == ["gpu02"]
    assert [host.name for host in wanted_hosts(fabric, lock(hosts=(1,)))] == ["gpu02", "gpu03"]


def test_only_the_host_that_was_looked_at_changes():
    new = draft(spec(), lock(), {"gpu02": Devices((nic(3, host=2), nic(4, host=2)))}).lock
    assert new.hosts["gpu01"] == lock().hosts["gpu01"]
    assert new.hosts["gpu02"].ports["compute/0"].pci == "0000:48:00.0"


def test_hosts_that_left_the_fabric_leave_the_lock():
    fabric = spec(("[01-03]", "[01-02]"), ("[11-13]", "[11-12]"))
    assert list(draft(fabric, lock(), {}).lock.hosts) == ["gpu01", "gpu02"]


def test_one_host_that_does_not_fit_does_not_stop_the_others():
    result = draft(spec(), Lock(), {"gpu01": Devices((nic(0), nic(1))), "gpu02": Devices()})
    assert list(result.lock.hosts) == ["gpu01"]
    assert [error.message for error in result.errors] == ["gpu02: 0 ports fit network compute, its profile has 2"]


def test_two_hosts_that_answer_as_one_are_refused():
    same = Devices((nic(0), nic(1)))
    with pytest.raises(SpecErrors, match="gpu02 compute/0: 02:00:00:00:01:00 is already gpu01 compute/0"):
        draft(spec(), Lock(), {"gpu01": same, "gpu02": same})


def test_a_device_that_fits_two_networks_is_not_guessed():
    fabric = spec(
        ("  management:", "  storage: {transport: roce, qos: dcqcn, rails: 2}\n  management:"),
        ("rail: 0-1}", "rail: 0-1}, {network: storage, rail: 0-1}"),
    )
    with pytest.raises(GpufabError, match=r"0000:18:00\.0 fits both compute/0 and storage/0"):
        lock_host(fabric, fabric.hosts[0], Devices((nic(0), nic(1))))


def ib(number, state="ACTIVE", rate="400 Gb/sec (4X NDR)"):
    guid = f"a088:c203:0000:000{number}"
    netdev = Netdev(f"ib{number}", "00:00:10:29:fe:80", 4092, "up", Unknown("none"), (), ())
    return nic(number, netdevs=(netdev,), rdma=(RdmaDevice(f"ibp{number}", guid, "InfiniBand", state, rate),))


INFINIBAND = ("transport: roce, speed_gbps: 400, mtu: 9000, rails: 2, qos: dcqcn", "transport: infiniband, rails: 2")


def test_infiniband_ports_are_pinned_by_guid():
    fabric = spec(INFINIBAND)
    found = lock_host(fabric, fabric.hosts[0], Devices((ib(1), nic(3), ib(0))))
    assert [(port.pci, port.guid, port.mac) for port in found.ports.values()] == [
        ("0000:18:00.0", "a088:c203:0000:0000", None),
        ("0000:28:00.0", "a088:c203:0000:0001", None),
    ]


@pytest.mark.parametrize(
    ("other", "fits"),
    [
        (ib(1), True),
        (ib(1, rate="100 Gb/sec (4X EDR)"), False),
        (ib(1, state="DOWN", rate="10 Gb/sec (4X SDR)"), True),
        (ib(1, rate=""), True),
    ],
    ids=["as declared", "slower", "down", "no rate"],
)
def test_the_rate_of_an_infiniband_port_counts_only_while_its_link_is_up(other, fits):
    fabric = spec((INFINIBAND[0], "transport: infiniband, speed_gbps: 400, rails: 2"))
    if fits:
        assert len(lock_host(fabric, fabric.hosts[0], Devices((ib(0), other))).ports) == 2
    else:
        with pytest.raises(GpufabError, match="1 ports fit network compute"):
            lock_host(fabric, fabric.hosts[0], Devices((ib(0), other)))


def test_a_port_without_rdma_is_one_of_an_ethernet_network():
    fabric = spec(("rail: 0-1}", "rail: 0-1}, {network: management, rail: 0}"))
    plain = nic(5, speed=10_000, driver="ixgbe", rdma=())
    found = lock_host(fabric, fabric.hosts[0], Devices((plain, nic(0), nic(1))))
    assert found.ports["management/0"].pci == plain.pci
    assert found.ports["management/0"].mac == plain.netdevs[0].mac


def test_networks_of_one_speed_are_told_apart_by_pci_address():
    fabric = spec(
        ("  management:", "  plane-b: {transport: roce, qos: dcqcn, rails: 2}\n  management:"),
        ("rail: 0-1}", 'rail: 0-1, pci: "*.0"}, {network: plane-b, rail: 0-1, pci: "*.1"}'),
    )
    second = [replace(nic(number), pci=nic(number).pci[:-1] + "1") for number in (0, 1)]
    found = lock_host(fabric, fabric.hosts[0], Devices((nic(0), second[0], nic(1), second[1])))
    assert [(rail, port.pci) for rail, port in found.ports.items()] == [
        ("compute/0", "0000:18:00.0"),
        ("compute/1", "0000:28:00.0"),
        ("plane-b/0", "0000:18:00.1"),
        ("plane-b/1", "0000:28:00.1"),
    ]
