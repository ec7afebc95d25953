"""What packages may do to those who use the node, and which stacks are known not to work."""

from dataclasses import replace

import pytest

from gpufab_cli.module_utils.change import ABSENT, Impact, Unknown
from gpufab_cli.module_utils.devices import Devices
from gpufab_cli.module_utils.packages.compatibility import FACTS, against, works
from gpufab_cli.module_utils.packages.impact import BURN, RELOAD
from gpufab_cli.module_utils.packages.made_for import other_kernel
from gpufab_cli.module_utils.packages.plan import plan
from gpufab_cli.module_utils.packages.seen import Database, Package
from gpufab_cli.module_utils.packages.want import OfedWant
from tests.unit.core.packages_node import DOCA, INBOX, MLNX, NCCL, ROCKY, STATE, as_wanted, closure_of, fresh
from tests.unit.core.roce_node import nic

PREF = "/etc/apt/preferences.d/gpufab-ofed.pref"
BURNING = replace(DOCA, firmware_updater=True)
BURNER = {"mlnx-fw-updater": "25.10"}


def with_packages(want, **packages):
    good = as_wanted(want)
    found = {**good.database.packages, **{name.replace("_", "-"): package for name, package in packages.items()}}
    return replace(good, database=Database({name: p for name, p in found.items() if p is not None}))


def with_file(want, text):
    good = as_wanted(want)
    return replace(good, files={**good.files, PREF: text})


def impact(seen, want, *nics):
    (step,) = plan(seen, Devices(nics), want).steps
    return step.impact


@pytest.mark.parametrize(
    ("seen", "want", "expected"),
    [
        (fresh(DOCA), DOCA, RELOAD),
        (fresh(MLNX, ROCKY), MLNX, RELOAD),
        (with_packages(DOCA, rdma_core=Package("2509mlnx60-1", held=True)), DOCA, RELOAD),
        (as_wanted(DOCA), replace(DOCA, version="3.3.0"), RELOAD),
        # scripts of removal unload too: to the distribution's, to the vendor's other, and of what burns firmware
        (as_wanted(DOCA), INBOX, RELOAD),
        (as_wanted(MLNX), DOCA, RELOAD),
        (with_packages(INBOX, rdma_core=Package("2510mlnx60-1")), INBOX, RELOAD),
        (with_packages(INBOX, mlnx_tools=Package("25.10-0")), INBOX, RELOAD),
        (with_packages(DOCA, mlnx_fw_updater=Package("25.10")), DOCA, RELOAD),
        # neither files nor holds, nor packages of the distribution, nor NCCL
        (fresh(INBOX), INBOX, frozenset()),
        (with_packages(INBOX, rdma_core=None), INBOX, frozenset()),
        (fresh(NCCL), NCCL, frozenset()),
        (with_packages(DOCA, rdma_core=Package("2510mlnx60-1")), DOCA, frozenset()),
        (with_file(DOCA, ABSENT), DOCA, frozenset()),
    ],
)
def test_a_vendor_s_packages_come_change_and_go_by_consent_alone(seen, want, expected):
    assert impact(seen, want) == expected


def test_a_node_that_cannot_be_read_is_taken_for_one_with_a_vendor_s_packages_where_they_are_wanted():
    assert impact(fresh(DOCA, database=Unknown("hangs")), DOCA) == RELOAD
    assert impact(fresh(INBOX, database=Unknown("hangs")), INBOX) == frozenset()


@pytest.mark.parametrize("seen", [fresh(DOCA, vfs=True), as_wanted(DOCA, vfs=True)])
def test_vfs_and_the_way_in_go_with_the_driver(seen):
    want = replace(DOCA, version="3.3.0")
    assert impact(seen, want) == RELOAD | {Impact.VF_LOSS}
    assert impact(seen, want, nic(carries=("an SSH connection",))) == RELOAD | {Impact.VF_LOSS, Impact.MANAGEMENT_PORT}


@pytest.mark.parametrize(
    ("changed", "want", "expected"),
    [
        ({"mlnx_fw_updater": None}, BURNING, RELOAD | BURN),
        ({"mlnx_fw_updater": Package("25.10", held=True, whole=False)}, BURNING, RELOAD | BURN),
        # another version of the stack, and perhaps of it
        ({}, replace(BURNING, version="3.3.0"), RELOAD | BURN),
        # pinned, and not what changes
        ({"rdma_core": Package("2509mlnx60-1", held=True)}, BURNING, RELOAD),
    ],
)
def test_firmware_is_burnt_by_consent_to_that_alone(monkeypatch, changed, want, expected):
    monkeypatch.setitem(closure_of(DOCA), "mlnx-fw-updater", "25.10")
    assert impact(with_packages(BURNING, **changed), want) == expected


EL98, EL95, UBUNTU_KERNEL = "5.14.0-687.%s.1.el9_8.x86_64", "5.14.0-503.11.1.el9_5.x86_64", "6.8.0-45-generic"


@pytest.mark.parametrize(
    ("want", "running", "device", "words"),
    [
        # 64: a kernel that the stack does not build for
        (OfedWant("doca-ofed", "3.2.2"), EL98 % 25, "", "DOCA 3.2.2 does not build for RHEL 9.8"),
        (OfedWant("doca-ofed", "3.2.2-001"), EL98 % 17, "", "DOCA 3.2.2 does not build for RHEL 9.8"),
        (OfedWant("doca-ofed", "3.2.2"), EL98 % 12, "", None),
        (OfedWant("doca-ofed", "3.2.3"), EL98 % 25, "", None),
        (OfedWant("doca-ofed", "3.2.2"), EL95, "", ""),
        (OfedWant("mlnx-ofed", "23.10-2.1.3.1"), EL95, "", "MLNX_OFED 23.10 does not support RHEL 9.5"),
        (OfedWant("mlnx-ofed", "24.10-2.1.8.0"), EL95, "", ""),
        # 63
        (OfedWant("doca-ofed", "3.2.0"), "6.8.12-9-pve", "", "Proxmox"),
        (OfedWant("doca-ofed", "3.3.0", modules="prebuilt"), UBUNTU_KERNEL, "", "say modules: dkms"),
        (OfedWant("doca-ofed", "3.10.0", modules="prebuilt"), UBUNTU_KERNEL, "", "say modules: dkms"),
        (OfedWant("doca-ofed", "3.2.0", modules="prebuilt"), UBUNTU_KERNEL, "", ""),
        (OfedWant("mlnx-ofed", "24.10-2.1.8.0"), UBUNTU_KERNEL, "0x1023", "MLNX_OFED does not support ConnectX-8"),
        (OfedWant("mlnx-ofed", "24.10-2.1.8.0"), UBUNTU_KERNEL, "0x1021", ""),
        (OfedWant("doca-ofed", "3.2.0"), UBUNTU_KERNEL, "0x1013", "DOCA 2.9 was the last for ConnectX-4"),
        (OfedWant("doca-ofed", "2.9.2"), UBUNTU_KERNEL, "0x1013", ""),
        (OfedWant("doca-ofed", "2.9.2"), UBUNTU_KERNEL, "0x1023", "DOCA 2.9 does not support ConnectX-8"),
        (OfedWant("doca-ofed", "2.10.0"), UBUNTU_KERNEL, "0x1023", ""),
    ],
)
def test_what_is_known_not_to_work_is_blocked_and_what_nobody_knows_is_told(want, running, device, words):
    """``words``: None where it is known to work, "" where nothing is known."""
    nics = (replace(nic(), device=device),) if device else ()
    seen = fresh(want, kernel=replace(STATE, running=running, next_boot=running))
    found = plan(seen, Devices(nics), want)
    (step,) = found.steps
    assert bool(step.blocked) is bool(words)
    assert (words or "") in step.blocked
    codes = {None: [], "": ["packages.untried"]}.get(words, ["packages.incompatible"])
    assert [finding.code for finding in found.findings] == codes


def test_another_s_card_and_a_vf_are_none_of_the_table_s():
    for changed in ({"vendor": "0x14e4"}, {"is_vf": True}):
        devices = Devices((replace(nic(), device="0x1023", **changed),))
        assert not list(against(OfedWant("mlnx-ofed", "24.10-2.1.8.0"), UBUNTU_KERNEL, devices))


def test_nothing_is_said_of_packages_that_are_there_nor_of_the_distribution_s():
    running = replace(STATE, running=EL98 % 25, next_boot=EL98 % 25)
    assert plan(as_wanted(DOCA), Devices(), DOCA).clean
    assert not plan(fresh(INBOX, kernel=running), Devices(), INBOX).findings


def test_the_table_never_says_both():
    for fact in FACTS:
        if not fact.says:
            want = OfedWant(fact.stack, fact.since)
            running = fact.kernel.replace("\\", "").replace(".*", "x86_64")
            assert works(want, running)
            assert not list(against(want, running, Devices()))


@pytest.mark.parametrize(
    ("name", "version", "running", "words"),
    [
        ("mlnx-ofed-kernel-modules", "24.10.OFED.24.10.2-1.kver.6.8.0-45-generic", UBUNTU_KERNEL, ""),
        (
            "mlnx-ofed-kernel-modules",
            "24.10.OFED.24.10.2-1.kver.6.8.0-4-generic",
            UBUNTU_KERNEL,
            "6.8.0-4-generic",
        ),
        ("mlnx-ofa_kernel-modules", "24.10-OFED.24.10.1.kver.5.14.0_503.11.1.el9_5.x86_64", EL95, ""),
        ("mlnx-ofa_kernel-modules", "24.10-OFED.24.10.1.kver.5.14.0_427.13.1.el9_4.x86_64", EL95, "5.14.0_427"),
        # 63: modules for an old kernel take that kernel's along
        ("linux-modules-extra-5.15.0-130-generic", "5.15.0-130.140", "5.15.0-139-generic", "5.15.0-130-generic"),
        ("linux-modules-extra-5.15.0-1039-nvidia", "5.15.0-1039.39", "5.15.0-1039-nvidia", ""),
        ("linux-image-generic", "6.8.0-45.45", "6.8.0-44-generic", ""),
        ("kernel-modules-extra", "5.14.0-503.11.1.el9_5", EL95, ""),
        ("kernel-core", "0:5.14.0-503.14.1.el9_5", EL95, "5.14.0-503.14.1.el9_5"),
        ("kernel-headers", "5.14.0-503.14.1.el9_5", EL95, ""),  # of the C library, not of modules
        ("rdma-core", "2510mlnx60-1", EL95, ""),
    ],
)
def test_a_package_for_another_kernel_is_told_by_name(name, version, running, words):
    found = other_kernel({"aaa": "1", name: version}, running)
    assert bool(found) is bool(words)
    assert words in found
