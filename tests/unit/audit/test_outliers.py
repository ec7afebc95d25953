"""Versions in which a few hosts differ from the others."""

from dataclasses import replace

from gpufab_cli.audit.outliers import outliers, traits
from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.devices import Devices, Gpu
from gpufab_cli.module_utils.gpu_stack.seen import DriverSeen, GpuStackSeen
from tests.snapshots import in_sync

GPU = Gpu("0000:1b:00.0", "0x10de", "0x2330", "nvidia", 0)


def host(kernel="6.1.0-25", gpus=(GPU,), **nic):
    found = in_sync("gpu01")
    nics = tuple(replace(item, psid="MT_838", **{"fw_version": "28.39.1002", **nic}) for item in found.devices.nics)
    return replace(found, kernel=kernel, devices=Devices(nics, gpus))


def found(*hosts):
    facts = {f"gpu{number:02d}": traits(snapshot) for number, snapshot in enumerate(hosts, 1)}
    return [(finding.hosts, finding.evidence) for finding in outliers(facts)]


def test_hosts_that_agree():
    assert found(host(), host(), host()) == []


def test_the_few_are_named_with_what_they_have():
    assert found(host(), host(fw_version="28.36.1010"), host()) == [
        (("gpu02",), "firmware of MT_838: gpu[01,03]: 28.39.1002; gpu02: 28.36.1010")
    ]


def test_the_version_of_the_gpu_driver_where_it_is_looked_at():
    def driver(version):
        return replace(host(), seen={"gpu_stack": GpuStackSeen(DriverSeen(version, version, version, True))})

    assert found(host(), driver("570.86.15"), driver(Unknown("x")), driver("570.86.15"), driver("535.1.2")) == [
        (("gpu05",), "GPU driver of hosts with 10de:2330: gpu[02,04]: 570.86.15; gpu05: 535.1.2")
    ]


def test_a_host_whose_own_devices_differ():
    mixed = host()
    nics = mixed.devices.nics
    mixed = replace(mixed, devices=Devices((nics[0], replace(nics[1], fw_version="28.36.1010")), mixed.devices.gpus))
    assert found(host(), host(), mixed)[0][0] == ("gpu03",)


def test_without_a_majority_all_stand_out():
    assert [hosts for hosts, _ in found(host(), host(kernel="6.8.0-45"))] == [("gpu01", "gpu02")]


def test_hosts_with_other_gpus_may_have_another_kernel():
    storage = host(kernel="6.8.0-45", gpus=())
    assert found(host(), host(), storage) == []


def test_a_driver_that_is_not_loaded():
    assert found(host(), host(), host(gpus=(replace(GPU, driver=""),))) == [
        (("gpu03",), "driver of 10de:2330: gpu[01-02]: nvidia; gpu03: none")
    ]


def test_what_is_not_known_says_nothing():
    assert found(host(), host(), host(fw_version=Unknown("devlink is not installed"))) == []


def test_virtual_functions_are_not_compared():
    assert found(host(), host(), host(is_vf=True, fw_version="1")) == []
