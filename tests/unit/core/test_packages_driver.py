"""Packages of an RDMA stack: the driver that runs, the one that is installed, and what a reload of it takes."""

from dataclasses import replace

import pytest

from gpufab_cli.module_utils.change import ABSENT, Impact, Unknown
from gpufab_cli.module_utils.devices import Devices
from gpufab_cli.module_utils.packages.seen import Module, Package
from tests.unit.core.packages_node import DOCA, INBOX, KERNEL, as_wanted, planned, with_packages
from tests.unit.core.roce_node import nic


@pytest.mark.parametrize(
    ("module", "reloads", "want", "steps", "waits"),
    [
        (Module("AAA", "AAA", "/lib/modules/x/updates/dkms/mlx5_core.ko"), True, DOCA, 0, 0),
        # 65: installed is not running: consent, or pending
        (Module("AAA", "BBB", "/lib/modules/x/updates/dkms/mlx5_core.ko"), True, DOCA, 1, 0),
        (Module("AAA", "BBB", "/lib/modules/x/updates/dkms/mlx5_core.ko"), False, DOCA, 0, 1),
        (Module("AAA", "BBB", "/lib/modules/x/kernel/drivers/mlx5_core.ko"), True, INBOX, 0, 1),
        (None, True, DOCA, 0, 0),
        # 65: openibd has ended well and loaded nothing; of the distribution's stack that is the site's affair
        (Module(ABSENT, "BBB", "/lib/modules/x/updates/dkms/mlx5_core.ko"), True, DOCA, 1, 0),
        (Module(ABSENT, "BBB", "/lib/modules/x/updates/dkms/mlx5_core.ko"), False, DOCA, 0, 1),
        (Module(ABSENT, "BBB", "/lib/modules/x/kernel/drivers/mlx5_core.ko"), True, INBOX, 0, 0),
    ],
)
def test_another_driver_runs_than_is_installed(module, reloads, want, steps, waits):
    found = planned(as_wanted(want, module=module, reloads=reloads), want)
    assert (len(found.steps), len(found.pending)) == (steps, waits)
    for step in found.steps:
        assert step.impact == {Impact.DRIVER_RELOAD, Impact.LINK_FLAP, Impact.SERVICE_RESTART, Impact.TRAFFIC}
    assert all(item.waits_for is Impact.REBOOT for item in found.pending)


@pytest.mark.parametrize(("carries", "needed"), [(("an SSH connection",), True), ((), False), (Unknown("why"), True)])
def test_a_reload_that_would_cut_the_way_in_needs_consent_to_that_too(carries, needed):
    seen = as_wanted(DOCA, module=Module("AAA", "BBB", "/lib/modules/x/updates/y.ko"), reloads=True)
    (step,) = planned(seen, DOCA, Devices((nic(carries=carries),))).steps
    assert (Impact.MANAGEMENT_PORT in step.impact) is needed


def test_a_reload_takes_the_vfs_along():
    module = Module("AAA", "BBB", "/lib/modules/x/updates/y.ko")
    for vfs in (True, False):
        (step,) = planned(as_wanted(DOCA, module=module, reloads=True, vfs=vfs), DOCA).steps
        assert (Impact.VF_LOSS in step.impact) is vfs


@pytest.mark.parametrize("burns", [True, False])
def test_a_reload_that_burns_firmware_takes_the_consent_of_that(burns):
    module = Module("AAA", "BBB", "/lib/modules/x/updates/y.ko")
    (step,) = planned(as_wanted(DOCA, module=module, reloads=True, burns=burns), DOCA).steps
    assert (Impact.FIRMWARE_RESET in step.impact) is burns


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"built": {"mlnx-ofed-kernel-dkms": False}}, "not built for"),
        # 63: the packages are there, and the kernel would load the distribution's module
        ({"module": Module("A", "A", "/lib/modules/x/kernel/drivers/net/mlx5_core.ko")}, "the distribution's"),
        ({"module": Module("A", Unknown("modinfo hangs"))}, "modinfo hangs"),
        # 65: there is none at all for this kernel
        ({"module": Module("A", ABSENT)}, f"none for {KERNEL}"),
        ({"module": Module(ABSENT, ABSENT)}, f"none for {KERNEL}"),
    ],
)
def test_packages_that_are_there_without_their_module(changed, words):
    found = planned(as_wanted(DOCA, **changed), DOCA)
    assert not found.steps
    assert [finding.code for finding in found.findings] == ["packages.dkms"]
    assert words in found.findings[0].evidence


def test_a_lost_hold_hides_neither_a_missing_module_nor_a_driver_to_load():
    unheld = with_packages(DOCA, rdma_core=Package("2510mlnx60-1"))
    found = planned(replace(unheld, built={"mlnx-ofed-kernel-dkms": False}), DOCA)
    assert [step.name for step in found.steps] == ["ofed packages"]
    assert [finding.code for finding in found.findings] == ["packages.dkms"]
    module = Module("AAA", "BBB", "/lib/modules/x/updates/dkms/mlx5_core.ko")
    found = planned(replace(unheld, module=module, reloads=True), DOCA)
    assert [step.name for step in found.steps] == ["ofed packages", "ofed driver"]
