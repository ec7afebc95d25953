"""What package managers print, in one line for the operator. Texts as apt 2.6 and dnf 4.14 print them."""

import re
from dataclasses import replace

import pytest

from gpufab_cli.module_utils.host import Output
from gpufab_cli.module_utils.packages.apt import AptRehearsal, _unpacked, simulated
from gpufab_cli.module_utils.packages.dnf import DnfRehearsal
from gpufab_cli.module_utils.packages.recipe import recipe
from gpufab_cli.module_utils.packages.seen import Database, Package
from gpufab_cli.module_utils.packages.transaction import RefusedError, said
from gpufab_cli.module_utils.packages.want import NcclWant
from tests.fakes import FakeHost, failed, ok
from tests.unit.core.packages_node import DOCA, INBOX, NCCL, ROCKY, UBUNTU, closure_of

ROOTS = recipe(INBOX, UBUNTU).roots
APT_OTHER_KEY = """W: GPG error: file:/srv/doca ./ InRelease: The following signatures couldn't be verified because \
the public key is not available: NO_PUBKEY 978554398A0C3887
E: The repository 'file:/srv/doca ./ InRelease' is not signed.
N: Updating from such a repository can't be done securely, and is therefore disabled by default.
"""
APT_GONE = "E: The repository 'file:/srv/gone ./ Release' does not have a Release file.\n"
DNF_OTHER_KEY = """Error: Failed to download metadata for repo 'gpufab-ofed': repomd.xml GPG signature verification \
error: Bad GPG signature
"""


@pytest.mark.parametrize(
    ("stderr", "words"),
    [
        (APT_OTHER_KEY, "NO_PUBKEY 978554398A0C3887"),
        (APT_GONE, "does not have a Release file."),
        (DNF_OTHER_KEY, "Bad GPG signature"),
    ],
)
def test_one_line_names_the_cause(stderr, words):
    line = said(Output(100, "", stderr))
    assert line.endswith(words)
    assert "\n" not in line


def test_nothing_printed_is_told_by_its_status():
    assert said(Output(100, "", "")) == "exit 100"


@pytest.mark.parametrize(("size", "needed"), [("41.3 kB", 41300), ("1,126 MB", 1.126e9), ("1.1 TB", 1.1e12)])
def test_space_that_apt_says_it_needs(size, needed):
    assert _unpacked(f"After this operation, {size} of additional disk space will be used.\n") == pytest.approx(needed)


def test_space_that_is_freed_is_none_needed():
    assert _unpacked("After this operation, 12 MB disk space will be freed.\n") == 0


def test_what_a_failed_run_left_half_configured_is_part_of_what_comes():
    said = "Conf mlnx-tools (26.01-1 localhost [all])\nInst doca-ofed [3.1.0-1] (3.2.0-1 localhost [all])\n"
    assert simulated(said).install == {"mlnx-tools": "26.01-1", "doca-ofed": "3.2.0-1"}


class Debian(FakeHost):
    """A node with DOCA whose apt knows the distribution's packages; ``along`` goes with what is removed first."""

    along = ""

    def _answer(self, argv):
        if "madison" in argv:
            return ok(
                "".join(f"{root.name} | 50.0-2 | http://d.example stable/main amd64 Packages\n" for root in ROOTS)
            )
        if "-s" in argv:
            went = "Remv doca-ofed [3.2.0-125000]\n"
            if "remove" in argv:
                return ok(went + self.along)
            return ok(went + "Inst rdma-core [2510mlnx60-1] (50.0-2 d.example [amd64])\n")
        return ok("")


def moved(along):
    """The rehearsed move of a node from DOCA to the distribution's stack."""
    database = Database({name: Package(version, held=True) for name, version in closure_of(DOCA).items()})
    host = Debian()
    host.along = along
    return AptRehearsal(host, recipe(INBOX, UBUNTU), UBUNTU, database, closure_of(DOCA)).run()


def test_what_goes_with_what_is_removed_first_comes_back_or_is_not_removed():
    assert moved("").along == ()
    assert moved("Remv rdma-core [2510mlnx60-1]\n").along == ("rdma-core",)
    with pytest.raises(RefusedError, match="it would remove openmpi-bin, which depend on what goes"):
        moved("Remv openmpi-bin [4.1.4-3]\n")


HALF_PINNED = """\
Package: doca-ofed
Status: hold ok installed
Version: 3.2.0-125000

Package: doca-extra
Status: hold ok installed
Version: 3.2.0-125000

Package: doca-kernel-support
Status: hold ok installed
Version: 3.1.0-091000
"""


class Supported(FakeHost):
    """A node with DOCA 3.2.0, whose doca-kernel-support is of the release before."""

    def _answer(self, argv):
        if "madison" in argv:
            rows = (f"{name} | 3.2.0-125000 | https://mirror.example ./ Packages" for name in argv if "doca-" in name)
            return ok("\n".join(rows))
        return ok("")


def test_a_root_of_any_version_moves_with_its_set_and_is_pinned_in_it():
    want = replace(DOCA, kernel_support=True)
    versions = {"doca-ofed": "3.2.0-125000", "doca-extra": "3.2.0-125000", "doca-kernel-support": "3.1.0-091000"}
    database = Database({name: Package(version, held=True) for name, version in versions.items()})
    host = Supported({"/var/lib/dpkg/status": HALF_PINNED})
    for pinned in ({}, versions):
        found = AptRehearsal(host, recipe(want, UBUNTU), UBUNTU, database, pinned).run()
        assert found.install["doca-kernel-support"] == "3.2.0-125000"
        asked = [argv for argv in host.writes if "--download-only" in argv][-1]
        assert "doca-kernel-support=3.2.0-125000" in asked
        assert {"doca-ofed", "doca-extra"} <= set(found.closure)


class Prebuilt(FakeHost):
    """A node on which apt would bring modules of the vendor's that are built for one kernel."""

    def _answer(self, argv):
        if "madison" in argv:
            return ok("doca-ofed | 3.2.0-125000 | https://mirror.example/doca ./ Packages\n")
        came = "Inst mlnx-ofed-kernel-modules (25.10-1.kver.6.8.0-45-generic mirror.example [amd64])\n"
        return ok(came if "-s" in argv else "")


def test_modules_that_are_built_for_another_kernel_are_refused():
    want = replace(DOCA, modules="prebuilt")
    for running, words in (
        ("6.8.0-45-generic", ""),
        ("6.8.0-50-generic", "is for kernel 6.8.0-45-generic, and 6.8.0-50"),
    ):
        host = Prebuilt({"/proc/sys/kernel/osrelease": running})
        rehearsal = AptRehearsal(host, recipe(want, UBUNTU), UBUNTU, Database(), {})
        if not words:
            assert rehearsal.run().install["doca-ofed"] == "3.2.0-125000"
        else:
            with pytest.raises(RefusedError, match=words):
                rehearsal.run()


class Burning(FakeHost):
    """A node whose own sources have a stack that depends on what burns firmware."""

    def _answer(self, argv):
        if "madison" in argv:
            rows = (f"{name} | 3.2.0-125000 | http://d.example ./ Packages" for name in argv if name in self.offered)
            return ok("\n".join(rows))
        came = "".join(f"Inst {name} (3.2.0-125000 d.example [amd64])\n" for name in self.offered)
        return ok(came if "-s" in argv else "")

    offered = ("doca-ofed", "libnccl2", "libnccl-dev", "mlnx-fw-updater")


@pytest.mark.parametrize("want", [replace(DOCA, repository=None), NcclWant("vendor", "3.2.0")])
def test_what_burns_firmware_does_not_come_along_unasked(want):
    with pytest.raises(RefusedError, match="it would bring mlnx-fw-updater along, which burns firmware unasked"):
        AptRehearsal(Burning(), recipe(want, UBUNTU), UBUNTU, Database(), {}).run()
    asked = replace(DOCA, repository=None, firmware_updater=True)
    found = AptRehearsal(Burning(), recipe(asked, UBUNTU), UBUNTU, Database(), {}).run()
    assert "mlnx-fw-updater" in found.brings


DNF_REMOVES = """\
Dependencies resolved.
Removing:
 doca-ofed       noarch 3.2.0-125000 @gpufab-ofed 0
%s
Transaction Summary
Operation aborted.
"""


class Rhel(FakeHost):
    """The same with dnf."""

    along = ""

    def _answer(self, argv):
        if argv[0] == "rpm":
            return ok("doca-ofed 0:3.2.0-125000\n")
        if "repoquery" in argv:
            return ok("".join(f"{root.name} 0:50.0-2\n" for root in recipe(INBOX, ROCKY).roots))
        return Output(1, DNF_REMOVES % self.along, "") if "remove" in argv else ok("")


def test_what_depends_on_what_goes_is_not_removed_by_dnf_either():
    host, made = Rhel(), recipe(INBOX, ROCKY)
    pinned = {"doca-ofed": "3.2.0-125000"}
    rehearsal = DnfRehearsal(host, made, ROCKY, Database({"doca-ofed": Package("3.2.0-125000")}), pinned)
    assert rehearsal.run().remove == ("doca-ofed",)
    host.along = "Removing dependent packages:\n openmpi         x86_64 4.1.1-7.el9 @appstream 0\n"
    with pytest.raises(RefusedError, match="it would remove openmpi, which depend on what goes"):
        rehearsal.run()


class Mixed(FakeHost):
    """A node whose distribution has a newer mstflint than the stack's repository."""

    rpms = "/run/gpufab/packages-ofed/rpms"

    def _answer(self, argv):
        if "--requires" in argv:
            return ok("mstflint\n")
        if "repoquery" in argv:
            both = "" if any("--repoid" in word for word in argv) else "mstflint 0:4.28.0-1\n"
            return ok(f"doca-ofed 0:3.2.0-125000\nmstflint 0:4.16.1-2\n{both}")
        if "install" in argv:
            version = "4.16.1-2" if "mstflint-4.16.1-2" in argv else "4.28.0-1"
            self.files |= {f"{self.rpms}/{name}.rpm": "" for name in ("doca-ofed-3.2.0-125000", f"mstflint-{version}")}
        if argv[:2] == ("rpm", "-qp") and "NAME} %" in argv[4]:
            names = (path.rpartition("/")[2][:-4] for path in argv[5:])
            return ok("".join(re.sub(r"^(.*)-([^-]+-[^-]+)$", r"\1 0:\2", name) + "\n" for name in names))
        return ok("")


def test_what_the_first_of_two_resolutions_brought_is_no_part_of_the_second():
    """The repository's version goes before the distribution's, and is pinned, also where it is the older."""
    found = DnfRehearsal(Mixed(), recipe(DOCA, ROCKY), ROCKY, Database(), {}).run()
    assert found.install == found.closure == {"doca-ofed": "3.2.0-125000", "mstflint": "4.16.1-2"}


@pytest.mark.parametrize(("lock", "refused"), [("0:4.16.1-2.*", False), ("0:4.28.0-1.*", True)])
def test_a_lock_of_somebody_else_s_is_in_the_way_of_other_versions(lock, refused):
    rehearsal = DnfRehearsal(Mixed(), recipe(DOCA, ROCKY), ROCKY, Database(foreign={"mstflint": lock}), {})
    if not refused:
        assert rehearsal.run().install["mstflint"] == "4.16.1-2"
        return
    with pytest.raises(RefusedError, match="mstflint is locked in versionlock"):
        rehearsal.run()


class Unresolved(FakeHost):
    """A node whose dnf cannot tell what the stack depends on."""

    def _answer(self, argv):
        if "--requires" in argv:
            return failed("Error: Failed to download metadata for repo 'gpufab-ofed'")
        return ok("doca-ofed 0:3.2.0-125000\n" if "repoquery" in argv else "")


def test_a_set_whose_dependencies_dnf_cannot_tell_is_not_pinned_as_whole():
    with pytest.raises(RefusedError, match="repository: Failed to download metadata"):
        DnfRehearsal(Unresolved(), recipe(DOCA, ROCKY), ROCKY, Database(), {}).run()


class Offline(FakeHost):
    """A node whose apt reaches nothing."""

    def _answer(self, argv):
        return failed("E: Failed to fetch\n", 100) if argv[0].startswith("apt") else ok("")


def test_a_rehearsal_reaches_the_repository_alone_through_its_proxy():
    want = replace(NCCL, repository=replace(NCCL.repository, proxy="http://proxy:3128"))
    host = Offline()
    with pytest.raises(RefusedError, match="repository: Failed to fetch"):
        AptRehearsal(host, recipe(want, UBUNTU), UBUNTU, Database(), {}).run()
    words = [word for argv in host.writes if argv[0] == "apt-get" for word in argv if "Proxy" in word]
    assert set(words) == {"Acquire::https::Proxy::mirror.example=http://proxy:3128"}
