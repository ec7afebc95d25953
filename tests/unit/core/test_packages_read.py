"""How packages are read: databases, locks, kernels, versions on offer; and that reading cannot write."""

import pytest

from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.devices import Devices
from gpufab_cli.module_utils.features import FEATURES, SEEN_TYPES
from gpufab_cli.module_utils.packages import database, kernel
from gpufab_cli.module_utils.packages.apt import simulated
from gpufab_cli.module_utils.packages.dnf import offered, removing
from gpufab_cli.module_utils.packages.gather import OPENIB_CONF, gather, versions
from gpufab_cli.module_utils.packages.next_kernel import next_kernel
from gpufab_cli.module_utils.packages.platforms import Platform, identify
from gpufab_cli.module_utils.packages.seen import KernelState, Module, Package
from gpufab_cli.module_utils.queries import NO_CACHE, allowed
from gpufab_cli.module_utils.schema import decode, encode
from tests.fakes import FakeHost, failed, ok
from tests.unit.core.packages_node import DOCA, INBOX, KERNEL, NCCL, ROCKY, UBUNTU

STATUS = """\
Package: libnccl2
Status: hold ok installed
Architecture: amd64
Version: 2.27.5-1+cuda12.9

Package: libnccl-dev
Status: install ok config-files
Version: 2.26.2-1+cuda12.8

Package: bash
Status: install ok installed
Version: 5.2.21-2ubuntu4
Description: A shell
 Package: of a description, no field
"""
UNAME = {("uname", "-m"): ok("x86_64\n")}


def everything(name, version):
    return True


def test_dpkg_is_read_as_its_file():
    found = database.look(FakeHost({"/var/lib/dpkg/status": STATUS}), UBUNTU, everything)
    assert found.packages == {"libnccl2": Package("2.27.5-1+cuda12.9", True), "bash": Package("5.2.21-2ubuntu4")}
    assert (found.broken, found.holder) == ({}, "")


@pytest.mark.parametrize(
    ("state", "broken"),
    [
        ("install ok half-configured", {"bash": "half-configured"}),
        ("install ok unpacked", {"bash": "unpacked"}),
        ("install reinstreq half-installed", {"bash": "half-installed and must be reinstalled"}),
        ("deinstall ok config-files", {}),
    ],
)
def test_what_dpkg_left_undone_is_told(state, broken):
    text = STATUS.replace("install ok installed\nVersion: 5.2", f"{state}\nVersion: 5.2")
    found = database.look(FakeHost({"/var/lib/dpkg/status": text}), UBUNTU, everything)
    assert found.broken == broken
    assert found.packages.get("bash", Package("", whole=False)).whole is False
    assert ("bash" in found.packages) is bool(broken)


TWINS = """\
Package: libibverbs1
Status: hold ok installed
Architecture: amd64
Version: 2510mlnx60-1

Package: libibverbs1
Status: install ok half-configured
Architecture: i386
Version: 50.0-2

Package: wine
Status: install ok installed
Architecture: i386
Version: 9.0
"""


def test_a_twin_of_another_architecture_is_another_package():
    for text in (TWINS, "\n\n".join(reversed(TWINS.split("\n\n")))):
        host = FakeHost({"/var/lib/dpkg/status": text})
        found = database.look(host, UBUNTU, everything)
        assert found.packages == {"libibverbs1": Package("2510mlnx60-1", held=True)}
        assert found.broken == {"libibverbs1:i386": "half-configured"}
        assert database.installed(host, UBUNTU) == {"libibverbs1": "2510mlnx60-1"}
    arm = Platform("ubuntu2404", "ubuntu24.04", "apt", "sbsa")
    host = FakeHost({"/var/lib/dpkg/status": TWINS.replace("i386", "arm64")})
    packages = database.look(host, arm, everything).packages
    assert packages == {"libibverbs1": Package("50.0-2", whole=False), "wine": Package("9.0")}


def test_a_rehearsal_sees_what_is_half_done_too():
    text = STATUS.replace("install ok installed\nVersion: 5.2", "install ok half-configured\nVersion: 5.2")
    host = FakeHost({"/var/lib/dpkg/status": text})
    assert database.installed(host, UBUNTU) == {"libnccl2": "2.27.5-1+cuda12.9", "bash": "5.2.21-2ubuntu4"}


def test_a_journal_of_dpkg_is_an_interruption():
    host = FakeHost({"/var/lib/dpkg/status": STATUS, "/var/lib/dpkg/updates/0001": ""})
    assert database.look(host, UBUNTU, everything).broken == {"dpkg": "interrupted"}


@pytest.mark.parametrize(
    ("line", "holder"),
    [
        ("1: POSIX  ADVISORY  WRITE 812 08:01:4711 0 EOF", "unattended-upgr (process 812)"),
        ("1: POSIX  ADVISORY  WRITE 9 08:01:4711 0 EOF", "a process"),
        ("1: POSIX  ADVISORY  READ  812 08:01:4711 0 EOF", ""),
        ("1: POSIX  ADVISORY  WRITE 812 08:01:4712 0 EOF", ""),
    ],
)
def test_who_holds_a_lock_is_told_without_taking_it(line, holder):
    host = FakeHost({"/var/lib/dpkg/status": STATUS, "/proc/locks": line, "/proc/812/comm": "unattended-upgr"})
    host.inodes["/var/lib/dpkg/lock-frontend"] = 4711
    assert database.look(host, UBUNTU, everything).holder == holder


def test_an_unreadable_database_is_unknown():
    host = FakeHost()
    host.unreadable["/var/lib/dpkg/status"] = "Permission denied"
    assert isinstance(database.look(host, UBUNTU, everything), Unknown)
    assert isinstance(database.look(FakeHost(), ROCKY, everything), Unknown)
    host = FakeHost(answers={("rpm", "-qa", "--qf", database.RPM_FORMAT): failed("error: cannot open Packages")})
    assert database.look(host, ROCKY, everything) == Unknown("rpm: exit 1: error: cannot open Packages")


def test_rpm_s_packages_have_an_epoch_only_where_it_says_something():
    answer = ok("libnccl 0:2.27.5-1+cuda12.9\nperftest 1:4.5-12.el9\n")
    locks = "# gpufab-ofed begin. x\nlibnccl-0:9-9.*\n# gpufab-ofed end\nrdma-core-0:48.0-1.el9.*\n"
    host = FakeHost(
        {"/etc/dnf/plugins/versionlock.list": locks}, answers={("rpm", "-qa", "--qf", database.RPM_FORMAT): answer}
    )
    found = database.look(host, ROCKY, everything)
    assert {name: package.version for name, package in found.packages.items()} == {
        "libnccl": "2.27.5-1+cuda12.9",
        "perftest": "1:4.5-12.el9",
    }
    assert found.foreign == {"rdma-core": "0:48.0-1.el9.*"}


@pytest.mark.parametrize(
    ("os_release", "machine", "found"),
    [
        ('ID=ubuntu\nVERSION_ID="24.04"\n', "x86_64", UBUNTU),
        ('ID="rocky"\nVERSION_ID="9.6"\n', "x86_64", ROCKY),
        ("ID=debian\nVERSION_ID=13\n", "aarch64", Platform("debian13", "debian13", "apt", "sbsa")),
        ("ID=debian\nVERSION_ID=11\n", "x86_64", ABSENT),
        ("ID=rocky\nVERSION_ID=8.10\n", "x86_64", ABSENT),
        ("ID=debian\nVERSION_ID=12\n", "riscv64", ABSENT),
    ],
)
def test_a_platform_is_one_of_the_table_or_none(os_release, machine, found):
    host = FakeHost({"/etc/os-release": os_release}, answers={("uname", "-m"): ok(machine + "\n")})
    assert identify(host) == found


def test_a_platform_that_cannot_be_read_is_unknown():
    assert isinstance(identify(FakeHost(answers=UNAME)), Unknown)
    text = {"/etc/os-release": 'ID=ubuntu\nVERSION_ID="24.04"\n'}
    for answer in ({}, {("uname", "-m"): failed("uname: killed")}):
        assert isinstance(identify(FakeHost(text, answers=answer)), Unknown)


BOOT = {"/proc/sys/kernel/osrelease": f"{KERNEL}\n", f"/lib/modules/{KERNEL}/build/Makefile": ""}


@pytest.mark.parametrize(
    ("files", "state"),
    [
        ({}, KernelState(KERNEL, ABSENT, True)),
        ({f"/boot/vmlinuz-{KERNEL}": "", "/boot/vmlinuz-6.8.0-9-generic": ""}, KernelState(KERNEL, KERNEL, True)),
        (
            {f"/boot/vmlinuz-{KERNEL}": "", "/boot/vmlinuz-6.8.0-100-generic": ""},
            KernelState(KERNEL, "6.8.0-100-generic", True),
        ),
        (
            {
                f"/boot/vmlinuz-{KERNEL}": "",
                "/boot/vmlinuz-6.8.0-100-generic": "",
                "/boot/vmlinuz-0-rescue-1": "",
                "/boot/grub2/grubenv": f"saved_entry={'a' * 32}-{KERNEL}\n",
            },
            KernelState(KERNEL, KERNEL, True),
        ),
        # 64: an update of the RHEL family leaves no file that asks for a reboot; 61: NVIDIA's own flavour
        *(
            (
                {
                    "/proc/sys/kernel/osrelease": f"{running}\n",
                    f"/lib/modules/{running}/build/Makefile": "",
                    **{f"/boot/vmlinuz-{release}": "" for release in (running, newer)},
                    "/boot/grub2/grubenv": f"saved_entry={'a' * 32}-{newer}\n" if "el9" in newer else "",
                },
                KernelState(running, newer, True),
            )
            for running, newer in (
                ("5.14.0-687.12.1.el9_8.x86_64", "5.14.0-687.25.1.el9_8.x86_64"),
                ("5.15.0-1039-nvidia", "5.15.0-1040-nvidia"),
            )
        ),
        ({kernel.SECURE_BOOT: b"\x06\0\0\0\x01"}, KernelState(KERNEL, ABSENT, True, secure_boot=True)),
        ({kernel.SECURE_BOOT: b"\x06\0\0\0\x00"}, KernelState(KERNEL, ABSENT, True)),
    ],
)
def test_the_kernel_that_runs_and_the_one_that_is_to_come(files, state):
    assert kernel.look(FakeHost({**BOOT, **files})) == state


OLD, NEW = "6.8.0-9-generic", "6.8.0-100-generic"
MENU = 'if [ "${next_entry}" ] ; then\n   set default="${next_entry}"\nelse\n   set default="%s"\nfi\n'
UUID = "8f7c0f2e-0000-4000-8000-000000000000"


@pytest.mark.parametrize(
    ("default", "grubenv", "found"),
    [
        ("0", "", NEW),
        ("0", f"next_entry=gnulinux-advanced-{UUID}>gnulinux-{OLD}-advanced-{UUID}", OLD),
        ("${saved_entry}", "", NEW),
        ("${saved_entry}", f"saved_entry=gnulinux-advanced-{UUID}>gnulinux-{OLD}-advanced-{UUID}", OLD),
        (f"Advanced options for Ubuntu>Ubuntu, with Linux {OLD}", "", OLD),
        (f"gnulinux-simple-{UUID}", "", NEW),
        ("1>2", "", Unknown("GRUB's default is '1>2'")),
        ("Windows Boot Manager", "", Unknown("GRUB's default is 'Windows Boot Manager'")),
        ("Advanced options for Ubuntu>Ubuntu, with Linux 5.15.0-1", "", Unknown),  # no such kernel is there
    ],
)
def test_the_kernel_of_the_next_boot_is_what_grub_starts(default, grubenv, found):
    files = {f"/boot/vmlinuz-{kernel}": "" for kernel in (OLD, NEW)}
    files |= {"/boot/grub/grub.cfg": MENU % default, "/boot/grub/grubenv": f"# GRUB Environment Block\n{grubenv}\n"}
    took = next_kernel(FakeHost(files))
    assert isinstance(took, Unknown) if found is Unknown else took == found


MACHINE = "a" * 32


@pytest.mark.parametrize(
    ("grubenv", "found"),
    [
        ("", NEW),
        ("saved_entry=0", NEW),
        (f"saved_entry={MACHINE}-{OLD}", OLD),
        (f"saved_entry={MACHINE}-{NEW}\nnext_entry={MACHINE}-{OLD}", OLD),  # once
        (f"saved_entry={MACHINE}-6.8.0-1-generic", NEW),  # it is gone
        (f"saved_entry={MACHINE}-0-rescue", Unknown(f"GRUB's default is '{MACHINE}-0-rescue'")),
        ("saved_entry=1", Unknown("GRUB's default is '1'")),
        ("saved_entry=Rocky Linux (6.8.0)", Unknown("GRUB's default is 'Rocky Linux (6.8.0)'")),
    ],
)
def test_of_boot_loader_entries_the_environment_says_which_is_next(grubenv, found):
    files = {f"/boot/vmlinuz-{kernel}": "" for kernel in (OLD, NEW, "0-rescue")}
    files |= {f"/boot/loader/entries/{MACHINE}-0-rescue.conf": "", "/boot/grub2/grubenv": f"# GRUB\n{grubenv}\n"}
    assert next_kernel(FakeHost(files)) == found


def test_a_boot_folder_or_a_menu_that_cannot_be_read_is_unknown():
    for path in ("/boot", "/boot/grub/grub.cfg", "/boot/grub2/grubenv"):
        host = FakeHost({f"/boot/vmlinuz-{NEW}": ""})
        host.unreadable[path] = "Permission denied"
        assert isinstance(next_kernel(host), Unknown)


@pytest.mark.parametrize(
    ("said", "enrolled"),
    [
        (ok("/var/lib/dkms/mok.pub is already enrolled\n"), True),
        (ok("/var/lib/dkms/mok.pub is not enrolled\n"), False),
    ],
)
def test_whether_the_firmware_knows_the_signing_key(said, enrolled):
    files = {**BOOT, kernel.SECURE_BOOT: b"\x06\0\0\0\x01", "/var/lib/dkms/mok.pub": "key"}
    host = FakeHost(files, answers={("mokutil", "--test-key", "/var/lib/dkms/mok.pub"): said})
    assert kernel.look(host).signing_key is enrolled


def test_a_module_is_built_when_dkms_has_it_for_the_running_kernel():
    folders = ("mlnx-ofed-kernel", "kernel-mft-dkms")
    host = FakeHost(links={f"/var/lib/dkms/{name}/kernel-{KERNEL}-x86_64": "25.10" for name in folders})
    packages = ("mlnx-ofed-kernel-dkms", "kernel-mft-dkms", "iser-dkms", "rdma-core")
    assert dict(kernel.built(host, packages, KERNEL)) == {
        "mlnx-ofed-kernel-dkms": True,
        "kernel-mft-dkms": True,
        "iser-dkms": False,
    }
    assert dict(kernel.built(host, packages, "6.8.0-100-generic"))["mlnx-ofed-kernel-dkms"] is False


SRCVERSION, CARD = "/sys/module/mlx5_core/srcversion", "/sys/bus/pci/devices/0000:18:00.0"
MODINFO = {
    ("modinfo", "-F", "filename", "mlx5_core"): ok("/lib/modules/x/updates/mlx5_core.ko\n"),
    ("modinfo", "-F", "srcversion", "mlx5_core"): ok("BBB\n"),
}


@pytest.mark.parametrize(
    ("files", "found"),
    [
        ({}, None),
        ({SRCVERSION: "AAA"}, Module("AAA", "BBB", "/lib/modules/x/updates/mlx5_core.ko")),
        (
            {f"{CARD}/class": "0x020000", f"{CARD}/vendor": "0x15b3"},
            Module(ABSENT, "BBB", "/lib/modules/x/updates/mlx5_core.ko"),
        ),
        ({f"{CARD}/class": "0x020000", f"{CARD}/vendor": "0x8086"}, None),
        ({"/sys/module/mlx5_core/initstate": "live"}, Module("", "BBB", "/lib/modules/x/updates/mlx5_core.ko")),
        ({f"{CARD}/class": "0x030200", f"{CARD}/vendor": "0x15b3"}, None),
    ],
)
def test_a_driver_that_is_not_loaded_matters_where_there_are_cards_for_it(files, found):
    assert kernel.module(FakeHost(files, answers=MODINFO)) == found


def test_vfs_are_seen_whatever_is_told_of_the_driver():
    card = {f"{CARD}/class": "0x020000", f"{CARD}/vendor": "0x15b3", "/etc/os-release": "ID=debian\nVERSION_ID=12\n"}
    for count, vfs in (("8", True), ("0", False)):
        seen = gather(FakeHost({**card, f"{CARD}/sriov_numvfs": count}, answers=UNAME), DOCA)
        assert (seen.vfs, gather(FakeHost(card, answers=UNAME), DOCA).vfs) == (vfs, False)


@pytest.mark.parametrize(
    ("text", "burns"),
    [
        ("ONBOOT=yes\nRUN_FW_UPDATER_ONBOOT=no\n", False),
        ("ONBOOT=yes\n", False),
        ("#RUN_FW_UPDATER_ONBOOT=yes\n", False),
        ("RUN_FW_UPDATER_ONBOOT=yes\n", True),
        ("RUN_FW_UPDATER_ONBOOT=no\nRUN_FW_UPDATER_ONBOOT=yes\n", True),
        (ABSENT, False),
        (Unknown("Permission denied"), True),
    ],
)
def test_openibd_burns_firmware_where_it_is_told_to_or_may_be(text, burns):
    files = {"/etc/os-release": "ID=debian\nVERSION_ID=12\n"}
    host = FakeHost({**files, **({} if text is ABSENT else {OPENIB_CONF: text})}, answers=UNAME)
    assert gather(host, DOCA).burns is burns


@pytest.mark.parametrize("said", [ok(""), failed("modinfo: ERROR: Module mlx5_core not found.")])
def test_of_two_drivers_that_do_not_tell_nothing_is_said(said):
    files = {"/sys/module/mlx5_core/initstate": "live", f"{CARD}/class": "0x020000", f"{CARD}/vendor": "0x15b3"}
    assert kernel.module(FakeHost(files, answers=dict.fromkeys(MODINFO, said))) is None


PLUGIN, MAIN = "/etc/dnf/plugins/versionlock.conf", "/etc/dnf/dnf.conf"


@pytest.mark.parametrize(
    ("files", "work"),
    [
        ({}, False),
        ({PLUGIN: "[main]\nenabled = 1\nlocklist = /etc/dnf/plugins/versionlock.list\n"}, True),
        ({PLUGIN: "[main]\nenabled = 1\n", MAIN: "[main]\n# plugins=0\ngpgcheck=1\n"}, True),
        ({PLUGIN: "[main]\nenabled = 0\n"}, False),
        ({PLUGIN: "[main]\nenabled = 1\n", MAIN: "[main]\nplugins=False\n"}, False),
    ],
)
def test_locks_of_dnf_work_where_its_plugin_does(files, work):
    text = {"/etc/os-release": 'ID="rocky"\nVERSION_ID="9.4"\n'}
    assert gather(FakeHost({**text, **files}, answers=UNAME), NCCL).locks_work is work


def test_versions_on_offer_come_from_packages_alone_and_once_each():
    madison = """\
  libnccl2 | 2.28.3-1+cuda13.0 | file:/srv/cuda ./ Packages
  libnccl2 | 2.27.5-1+cuda12.9 | file:/srv/cuda ./ Packages
  libnccl2 | 2.27.5-1+cuda12.9 | http://other ./ Packages
  libnccl2 | 2.18.5-1 | http://archive noble/multiverse Sources
"""
    assert versions(madison) == {"libnccl2": ("2.28.3-1+cuda13.0", "2.27.5-1+cuda12.9")}


def test_a_simulation_tells_what_comes_and_goes():
    text = """\
Remv mlnx-ofed-all [24.10-2.1.8.0]
Inst libibverbs1 [2410mlnx54-1] (50.0-2 Ubuntu:24.04/noble [amd64])
Inst rdma-core (50.0-2 Ubuntu:24.04/noble [amd64]) []
Conf libibverbs1 (50.0-2 Ubuntu:24.04/noble [amd64])
"""
    found = simulated(text)
    assert found.install == {"libibverbs1": "50.0-2", "rdma-core": "50.0-2"}
    assert found.remove == ("mlnx-ofed-all",)


def test_dnf_s_table_tells_what_goes():
    text = """\
Installing:
 doca-ofed       noarch 3.2.0-125000 gpufab-ofed 5 k
Removing dependent packages:
 mlnx-ofed-all   noarch 24.10-2.1.8.0 @gpufab-ofed 0
 a-name-that-is-too-long-for-its-column
                 noarch 1-1 @baseos 0

Transaction Summary
"""
    assert removing(text) == ("mlnx-ofed-all", "a-name-that-is-too-long-for-its-column")
    assert offered("a 0:1-1\n\na 0:1-10\na 1:1-2\n") == {"a": ("1:1-2", "1-10", "1-1")}


def test_only_what_looks_is_allowed():
    assert allowed(("apt-cache", *NO_CACHE, "madison", "libnccl2", "libnccl-dev"))
    for argv in (
        ("apt-cache", "madison", "libnccl2"),  # would write its cache
        ("apt-cache", *NO_CACHE, "madison", "-o=Dir::Cache=/tmp"),
        ("rpm", "-e", "libnccl"),
        ("rpm", "-qa", "--qf", "%(touch /tmp/x)"),
        ("mokutil", "--import", "/var/lib/dkms/mok.pub"),
        ("modinfo", "-F", "filename", "../x"),
    ):
        assert not allowed(argv), argv


def test_apt_is_asked_only_for_what_is_not_there_as_wanted():
    asked = ("apt-cache", *NO_CACHE, "madison", "libnccl-dev")
    offers = ok("libnccl-dev | 2.27.5-1+cuda12.9 | file:/srv ./ Packages\n")
    release = "ID=ubuntu\nVERSION_ID=24.04\n"
    host = FakeHost({"/etc/os-release": release, "/var/lib/dpkg/status": STATUS}, answers={**UNAME, asked: offers})
    assert FEATURES["nccl"].gather(host, Devices(), NCCL).available == {"libnccl-dev": ("2.27.5-1+cuda12.9",)}
    host.files["/var/lib/dpkg/status"] = STATUS.replace("install ok config-files", "hold ok installed").replace(
        "2.26.2-1+cuda12.8", "2.27.5-1+cuda12.9"
    )
    host.answers[asked] = lambda: pytest.fail("asked")
    assert FEATURES["nccl"].gather(host, Devices(), NCCL).available == {}


@pytest.mark.parametrize("want", [DOCA, INBOX, NCCL])
def test_a_whole_look_writes_nothing_and_survives_its_journey(want):
    name = "nccl" if want is NCCL else "ofed"
    host = FakeHost(
        {
            "/etc/os-release": "ID=ubuntu\nVERSION_ID=24.04\n",
            "/var/lib/dpkg/status": STATUS,
            "/usr/local/lib/python3.12/dist-packages/nvidia/nccl/lib/libnccl.so.2": "",
            **BOOT,
        },
        answers=UNAME,
    )
    seen = FEATURES[name].gather(host, Devices(), want)
    assert not host.writes
    assert seen.platform == UBUNTU
    assert isinstance(seen.available, Unknown) is (want is not INBOX)  # of "the distribution's" no version is told
    assert bool(seen.bundled) is (name == "nccl")
    assert decode(SEEN_TYPES[name], encode(seen)) == seen
