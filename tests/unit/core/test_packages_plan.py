"""What is planned of packages, what is refused, and what is only told. Field reports by their subject."""

from dataclasses import replace

import pytest

from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.packages import files
from gpufab_cli.module_utils.packages.recipe import fits, nccl_version, recipe
from gpufab_cli.module_utils.packages.seen import Database, KernelState, Package
from gpufab_cli.module_utils.packages.want import NcclWant, OfedWant
from tests.unit.core.packages_node import (
    DOCA,
    INBOX,
    KERNEL,
    MLNX,
    NCCL,
    ROCKY,
    STATE,
    UBUNTU,
    as_wanted,
    closure_of,
    fresh,
    planned,
    with_packages,
)

PREF = "/etc/apt/preferences.d/gpufab-nccl.pref"
SOURCE = "/etc/apt/sources.list.d/gpufab-nccl.sources"
KEYRING = "/etc/apt/keyrings/gpufab-nccl.asc"


def changes(found):
    return {change.path: (change.current, change.desired) for step in found.steps for change in step.changes}


@pytest.mark.parametrize("platform", [UBUNTU, ROCKY], ids=["apt", "dnf"])
@pytest.mark.parametrize("want", [DOCA, MLNX, INBOX, NCCL], ids=["doca", "mlnx", "inbox", "nccl"])
def test_a_node_as_wanted_needs_nothing_and_a_fresh_one_all(want, platform):
    assert planned(as_wanted(want, platform), want).clean
    found = planned(fresh(want, platform), want)
    (step,) = found.steps
    assert not step.blocked
    assert bool(step.impact) is (want in (DOCA, MLNX))
    missing = {path[0] for path, (current, _) in changes(found).items() if current is ABSENT}
    assert {root.name for root in recipe(want, platform).roots} <= missing


def test_versions_are_of_any_revision_unless_one_is_named():
    assert fits("3.2.0-125000", "3.2.0")
    assert fits("3.2.0", "3.2.0")
    assert not fits("3.2.0.1-1", "3.2.0")
    assert not fits("3.2.0-2", "3.2.0-1")
    assert nccl_version(NCCL) == "2.27.5-*+cuda12.9"
    assert not fits("2.27.5-1+cuda13.0", nccl_version(NCCL))
    assert not fits("2.27.5-1", nccl_version(NCCL))
    assert nccl_version(NcclWant("vendor", "2.27.5-2", "12.9")) == "2.27.5-2+cuda12.9"


def test_what_the_lists_offer_is_named_exactly():
    seen = fresh(NCCL, available={"libnccl2": ("2.28.3-1+cuda13.0", "2.27.5-1+cuda12.9")})
    assert changes(planned(seen, NCCL))[("libnccl2",)] == (ABSENT, "2.27.5-1+cuda12.9")


def damaged(**texts):
    good = as_wanted(NCCL)
    return replace(good, files={**good.files, **{globals()[name]: text for name, text in texts.items()}})


@pytest.mark.parametrize(
    ("seen", "code", "path"),
    [
        (damaged(SOURCE=ABSENT), "packages.repository", (SOURCE,)),
        (damaged(SOURCE="Types: deb"), "packages.repository", (SOURCE,)),
        (damaged(KEYRING="another key"), "packages.key", (KEYRING,)),
        (damaged(PREF=ABSENT), "packages.pin", (PREF,)),
    ],
)
def test_a_damaged_file_is_named_and_nothing_else(seen, code, path):
    found = planned(seen, NCCL)
    assert [(change.code, change.path) for step in found.steps for change in step.changes] == [(code, path)]


def test_a_pin_that_was_taken_out_is_seen_by_the_digest():
    text = as_wanted(DOCA).files["/etc/apt/preferences.d/gpufab-ofed.pref"]
    stanza = "Package: rdma-core\nPin: version 2510mlnx60-1\nPin-Priority: 1001\n\n"
    assert stanza in text
    good = as_wanted(DOCA)
    seen = replace(good, files={**good.files, "/etc/apt/preferences.d/gpufab-ofed.pref": text.replace(stanza, "")})
    assert {change.code for step in planned(seen, DOCA).steps for change in step.changes} == {"packages.pin"}


@pytest.mark.parametrize(
    ("seen", "want", "code", "values"),
    [
        (
            with_packages(NCCL, libnccl_dev=Package("2.28.3-1+cuda13.0", True)),
            NCCL,
            "packages.version",
            ("2.28.3-1+cuda13.0", "2.27.5-1+cuda12.9"),
        ),
        # 67: the version is right and the hold was lost; nothing else is touched
        (
            with_packages(NCCL, libnccl2=Package("2.27.5-1+cuda12.9")),
            NCCL,
            "packages.hold",
            ("install", "hold"),
        ),
        (with_packages(DOCA, mlnx_fw_updater=Package("25.10")), DOCA, "packages.firmware-updater", ("25.10", ABSENT)),
        (
            with_packages(INBOX, mlnx_tools=Package("25.10-0")),
            INBOX,
            "packages.other-stack",
            ("25.10-0", "not the other stack's"),
        ),
        (
            with_packages(INBOX, libibverbs1=Package("2510mlnx60-1")),
            INBOX,
            "packages.other-stack",
            ("2510mlnx60-1", "not the other stack's"),
        ),
        (
            with_packages(INBOX, rdma_core=Package("2510mlnx60-1")),
            INBOX,
            "packages.version",
            ("2510mlnx60-1", "the distribution's"),
        ),
        (
            with_packages(DOCA, rdma_core=Package("50.0-2", True)),
            DOCA,
            "packages.version",
            ("50.0-2", "2510mlnx60-1"),
        ),
        (
            with_packages(DOCA, doca_all=Package("3.2.0-1")),
            DOCA,
            "packages.other-stack",
            ("3.2.0-1", "not the other stack's"),
        ),
        (
            with_packages(MLNX, doca_ofed=Package("3.2.0-1")),
            MLNX,
            "packages.other-stack",
            ("3.2.0-1", "not the other stack's"),
        ),
    ],
)
def test_a_package_that_is_not_as_wanted(seen, want, code, values):
    (step,) = planned(seen, want).steps
    (change,) = step.changes
    assert (change.code, (change.current, change.desired)) == (code, values)


def test_a_package_that_is_missing_is_brought_and_held():
    (step,) = planned(with_packages(NCCL, libnccl_dev=None), NCCL).steps
    assert [change.path for change in step.changes] == [("libnccl-dev",), ("libnccl-dev", "hold")]


def test_firmware_may_be_burnt_where_it_is_asked_for():
    want = replace(DOCA, firmware_updater=True)
    seen = as_wanted(want)
    assert "mlnx-fw-updater" in seen.database.packages
    assert planned(seen, want).clean
    assert changes(planned(fresh(want), want))[("mlnx-fw-updater",)] == (ABSENT, "any version")
    assert "mlnx-fw-updater" not in seen.files["/etc/apt/preferences.d/gpufab-ofed.pref"]


def test_another_version_is_resolved_anew_and_the_old_closure_says_nothing():
    want = replace(DOCA, version="3.3.0")
    found = changes(planned(as_wanted(DOCA), want))
    assert found[("doca-ofed",)] == ("3.2.0-125000", "3.3.0")
    assert ("rdma-core",) not in found
    assert found[("/etc/apt/preferences.d/gpufab-ofed.pref",)][1] == "doca-ofed 3.3.0"


def test_from_a_vendor_s_stack_to_the_distribution_s_all_of_it_goes():
    found = planned(as_wanted(DOCA), INBOX)
    codes = {change.path[-1]: change.code for step in found.steps for change in step.changes}
    assert codes["doca-ofed"] == codes["mlnx-ofed-kernel-dkms"] == "packages.other-stack"
    assert codes["/etc/apt/sources.list.d/gpufab-ofed.sources"] == "packages.repository"
    assert codes["/etc/apt/keyrings/gpufab-ofed.asc"] == "packages.key"
    assert changes(found)[("/etc/apt/sources.list.d/gpufab-ofed.sources",)][1] is ABSENT


NEW_KERNEL = "6.8.0-100-generic"
BROKEN = Database(broken={"bash": "half-configured", "x": "unpacked"})


@pytest.mark.parametrize(
    ("seen", "code", "words"),
    [
        # 64: the next boot takes another kernel
        (
            fresh(DOCA, kernel=replace(STATE, next_boot=NEW_KERNEL)),
            "packages.kernel-pending",
            f"next boot takes {NEW_KERNEL}",
        ),
        (
            fresh(DOCA, kernel=replace(STATE, next_boot=Unknown("GRUB's default is '1>2'"))),
            "packages.kernel-pending",
            "cannot tell which kernel the next boot takes: GRUB's default is '1>2'",
        ),
        # 63: no headers of just that kernel
        (fresh(DOCA, kernel=replace(STATE, headers=False)), "packages.headers", f"no headers of {KERNEL}"),
        (fresh(DOCA, kernel=replace(STATE, secure_boot=True)), "packages.secure-boot", "no enrolled key"),
        (fresh(DOCA, kernel=replace(STATE, secure_boot=Unknown("EPERM"))), "packages.secure-boot", "cannot tell"),
        (fresh(DOCA, database=BROKEN), "packages.half-configured", "bash is half-configured and 1 more"),
        (fresh(DOCA, database=Database(holder="apt (process 7)")), "packages.locked", "apt (process 7)"),
        (fresh(DOCA, free_bytes=1 << 30), "packages.disk-full", "1.0 GiB free in /usr, 2 GiB are needed"),
        # 67: somebody else's hold is not lifted
        (
            fresh(DOCA, database=Database({"doca-ofed": Package("3.1.0-1", True)})),
            "packages.foreign-hold",
            "doca-ofed is held at 3.1.0-1",
        ),
        (
            fresh(DOCA, database=Database({"mlnx-ofed-all": Package("24.10-1", True)})),
            "packages.foreign-hold",
            "is on hold, and would go",
        ),
    ],
)
def test_what_forbids_it_is_one_line_before_anything_is_touched(seen, code, words):
    found = planned(seen, DOCA)
    (step,) = found.steps
    assert words in step.blocked
    assert "\n" not in step.blocked
    assert [finding.code for finding in found.findings] == [code]


def test_a_package_of_the_set_that_is_half_done_gets_its_version_and_is_whole():
    good = as_wanted(DOCA)
    packages = {name: p for name, p in good.database.packages.items() if name != "mlnx-ofed-kernel-dkms"}
    half = Database(packages, {"mlnx-ofed-kernel-dkms": "half-configured"})
    (step,) = planned(replace(good, database=half), DOCA).steps
    assert not step.blocked
    assert step.changes[0].path == ("mlnx-ofed-kernel-dkms",)


@pytest.mark.parametrize(
    ("name", "want", "code"),
    [
        # its maintainer script fails with the firmware that it burns
        ("mlnx-fw-updater", DOCA, "packages.firmware-updater"),
        ("mlnx-ofed-all", DOCA, "packages.other-stack"),
        ("doca-ofed", INBOX, "packages.other-stack"),
        ("rdma-core", INBOX, "packages.version"),
        ("rdma-core", DOCA, "packages.version"),
    ],
)
def test_a_package_that_is_half_there_is_there(name, want, code):
    good = as_wanted(want)
    version = closure_of(want).get(name, "24.10-1")
    packages = {**good.database.packages, name: Package(version, name in closure_of(want), whole=False)}
    half = Database(packages, {name: "half-configured"})
    (step,) = planned(replace(good, database=half), want).steps
    assert not step.blocked
    assert [(c.code, c.current) for c in step.changes if c.path == (name,)] == [(code, f"{version}, half-configured")]


def test_prebuilt_modules_need_no_headers_but_the_kernel_that_will_run():
    want = replace(DOCA, modules="prebuilt")
    state = KernelState(KERNEL, KERNEL, headers=False, secure_boot=True)
    assert not planned(fresh(want, kernel=state), want).steps[0].blocked
    pending = planned(fresh(want, kernel=replace(state, next_boot=NEW_KERNEL)), want)
    assert "next boot takes" in pending.steps[0].blocked


def test_kernels_do_not_matter_to_the_distribution_s_stack_nor_to_holds():
    no_kernel = replace(STATE, next_boot=NEW_KERNEL, headers=False)
    assert not planned(fresh(INBOX, kernel=no_kernel), INBOX).steps[0].blocked
    unheld = with_packages(DOCA, rdma_core=Package("2510mlnx60-1"))
    assert not planned(replace(unheld, kernel=no_kernel), DOCA).steps[0].blocked


def test_a_lock_of_versionlock_is_a_hold():
    seen = fresh(NCCL, ROCKY, database=Database(foreign={"libnccl": "0:2.18.5-1.*"}))
    assert "libnccl is locked at 0:2.18.5-1.*" in planned(seen, NCCL).steps[0].blocked


def test_a_lock_at_the_very_version_is_none_in_the_way():
    want = replace(NCCL, version="2.27.5-1")
    seen = fresh(want, ROCKY, database=Database(foreign={"libnccl": "0:2.27.5-1+cuda12.9.*"}))
    assert not planned(seen, want).steps[0].blocked


def test_a_vendor_s_build_that_somebody_holds_is_told_before_a_run():
    want = NcclWant("distribution")
    seen = fresh(want, database=Database({"libnccl2": Package("2.22.3-1+cuda12.6", held=True)}))
    assert "libnccl2 is held at 2.22.3-1+cuda12.6" in planned(seen, want).steps[0].blocked


def test_an_unknown_platform_is_told_and_nothing_planned():
    for platform, unknown in ((ABSENT, False), (Unknown("no uname"), True)):
        found = planned(replace(fresh(NCCL), platform=platform), NCCL)
        assert not found.steps
        assert [(f.code, f.unknown) for f in found.findings] == [("packages.platform", unknown)]


def test_an_unreadable_database_withholds_the_whole_step():
    found = planned(fresh(NCCL, database=Unknown("rpm: hangs")), NCCL)
    assert found.steps[0].unknowns


def test_a_framework_s_own_nccl_is_told():
    path = "/usr/lib/python3/dist-packages/nvidia/nccl/lib/libnccl.so.2"
    found = planned(as_wanted(NCCL, bundled=(path,)), NCCL)
    assert not found.steps
    assert [(finding.code, finding.path) for finding in found.findings] == [("packages.bundled-nccl", (path,))]


def test_pins_that_dnf_does_not_heed_are_told():
    found = planned(as_wanted(NCCL, ROCKY, locks_work=False), NCCL)
    assert [finding.code for finding in found.findings] == ["packages.no-versionlock"]


def test_the_distribution_s_nccl_is_pinned_only_at_a_named_version():
    free, fixed = NcclWant("distribution"), NcclWant("distribution", "2.22.3")
    assert files.pins(recipe(free, UBUNTU), UBUNTU, {}) == ""
    assert not recipe(free, UBUNTU).pinned
    assert recipe(fixed, UBUNTU).pinned


def test_the_vendor_s_build_is_not_the_distribution_s_nccl():
    vendor = Package("2.22.3-1+cuda12.6")
    for version in (None, "2.22.3"):
        want = NcclWant("distribution", version, dev=False)
        seen = fresh(want, database=Database({"libnccl2": vendor}), available={"libnccl2": ("2.22.3-1+cuda12.6",)})
        (change, *_) = [c for step in planned(seen, want).steps for c in step.changes if c.path == ("libnccl2",)]
        assert change.current == vendor.version
        assert "cuda" not in change.desired


def test_two_sets_share_versionlock_in_peace():
    ofed, nccl = recipe(DOCA, ROCKY), recipe(NCCL, ROCKY)
    text = files.pins(ofed, ROCKY, closure_of(DOCA), "# the site's\nkernel-0:5.14.0-1.*\n")
    text = files.pins(nccl, ROCKY, closure_of(NCCL, ROCKY), text)
    assert text.startswith("# the site's\nkernel-0:5.14.0-1.*\n")
    assert files.pins(ofed, ROCKY, closure_of(DOCA), text) == text
    assert files.closure("ofed", ROCKY, text) == closure_of(DOCA)
    assert files.closure("nccl", ROCKY, text) == closure_of(NCCL, ROCKY)
    assert files.pins(recipe(INBOX, ROCKY), ROCKY, {}, text).count("gpufab-ofed begin") == 1


def test_a_proxy_is_the_repository_s_alone():
    want = replace(DOCA, repository=replace(DOCA.repository, proxy="http://proxy:3128"))
    text = files.declared(recipe(want, UBUNTU), UBUNTU)["/etc/apt/apt.conf.d/90gpufab-ofed"]
    assert 'Acquire::https::Proxy::mirror.example "http://proxy:3128";' in text
    assert "proxy=http://proxy:3128" in files.declared(recipe(want, ROCKY), ROCKY)["/etc/yum.repos.d/gpufab-ofed.repo"]


def test_profiles_are_the_packages_they_are_named_after():
    for profile in ("doca-roce", "doca-all"):
        made = recipe(OfedWant("doca-ofed", "3.2.0", profile, kernel_support=True), ROCKY)
        assert [root.name for root in made.roots] == [profile, "doca-extra", "doca-kernel-support"]
