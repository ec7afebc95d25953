"""Kernel arguments: two truths by GRUB and by boot loader entries, and no reboot asked for twice."""

from dataclasses import replace

import pytest

from gpufab_cli.module_utils import planning
from gpufab_cli.module_utils.change import ABSENT, Impact, Unknown
from gpufab_cli.module_utils.converge import Order, converge
from gpufab_cli.module_utils.features import FEATURES
from gpufab_cli.module_utils.kernel.bootloader import DROP_IN
from gpufab_cli.module_utils.kernel.want import KernelWant
from gpufab_cli.module_utils.schema import encode
from tests.fakes import FakeHost, ok
from tests.unit.core.grubby import grubby

FEATURE = FEATURES["kernel"]
WANT = KernelWant(iommu="passthrough")
BOTH = ("intel_iommu=on", "iommu=pt")
MENU = "menuentry 'x' {{\n\tlinux\t/boot/vmlinuz-6.8 root=/dev/sda1 ro secret=1 {0}\n}}\nlinux16 /boot/memtest\n"
ENTRY = "/boot/loader/entries/abc-5.14.conf"


class Node(FakeHost):
    """A node whose boot loader tools do what they do."""

    def __init__(self, vendor="GenuineIntel", files=None):
        super().__init__(files)
        self.files["/proc/cpuinfo"] = f"vendor_id\t: {vendor}\n"
        self.files["/proc/cmdline"] = "root=/dev/sda1 ro secret=1\n"
        self.boot("boot-1")

    def boot(self, boot_id):
        self.files["/proc/sys/kernel/random/boot_id"] = boot_id

    def _answer(self, argv):
        if argv[0] == "update-grub":
            text = self.files.get(DROP_IN, b"").decode()
            words = text.partition("$GRUB_CMDLINE_LINUX ")[2].rstrip('"\n')
            self.files["/boot/grub/grub.cfg"] = MENU.format(words)
            return ok("")
        if argv[0] == "grubby":
            grubby(self.files, argv)
            return ok("")
        return super()._answer(argv)


def grub():
    return Node(files={"/boot/grub/grub.cfg": MENU.format("quiet")})


def bls(options="root=/dev/sda1 ro"):
    return Node(
        files={
            ENTRY: f"linux /vmlinuz-5.14\noptions {options}\n",
            "/boot/loader/entries/abc-0-rescue.conf": "linux /vmlinuz-0-rescue\noptions ro\n",
        }
    )


def plan(host, want=WANT):
    return planning.plan(FEATURE, planning.take(host, {"kernel": FEATURE}, {"kernel": want}), want)


def run(host, want=WANT):
    return converge(host, FEATURE, want, Order())


@pytest.mark.parametrize("make", [grub, bls])
def test_it_is_set_for_the_next_boot_and_waits_for_it(make):
    host = make()
    outcome = run(host)
    assert [result.status.value for result in outcome.steps] == ["made"]
    found = plan(host)
    assert found.steps == ()
    assert [(item.path[1], item.running, item.waits_for) for item in found.pending] == [
        (word, ABSENT, Impact.REBOOT) for word in BOTH
    ]
    host.files["/proc/cmdline"] = "ro intel_iommu=on iommu=pt\n"
    assert plan(host).clean


@pytest.mark.parametrize("make", [grub, bls])
def test_a_reboot_that_brought_nothing_is_not_asked_for_again(make):
    host = make()
    run(host)
    host.boot("boot-2")
    outcome = run(host)
    assert outcome.pending == ()
    assert {finding.code for finding in outcome.findings} == {"node.reset-without-effect"}


def test_amd_needs_one_word_and_another_vendor_none():
    assert [change.path[-1] for change in plan(Node("AuthenticAMD", {ENTRY: "options ro\n"})).steps[0].changes] == [
        "iommu=pt"
    ]
    assert plan(Node("0x41", {ENTRY: "options ro\n"})).clean


def test_what_the_site_has_set_itself_is_enough():
    host = Node(files={"/boot/grub/grub.cfg": MENU.format("iommu=pt intel_iommu=on")})
    assert plan(host).steps == ()
    assert len(plan(host).pending) == 2


def test_a_wish_that_shrinks_is_taken_out_of_gpufabs_file():
    host = grub()
    run(host, KernelWant(arguments=("a=1", "b=2")))
    run(host, KernelWant(arguments=("a=1",)))
    assert b"b=2" not in host.files[DROP_IN]
    assert "b=2" not in host.files["/boot/grub/grub.cfg"]
    assert plan(host, KernelWant(arguments=("a=1",))).steps == ()


def test_every_kernel_of_the_menu_must_have_it_rescue_kernels_aside():
    host = bls("ro intel_iommu=on iommu=pt")
    assert plan(host).steps == ()
    host.files["/boot/loader/entries/abc-5.15.conf"] = "options ro\n"
    assert plan(host).steps


def test_kernelopts_of_the_environment_count():
    host = bls("ro $kernelopts")
    host.files["/boot/grub2/grubenv"] = "# GRUB\nkernelopts=intel_iommu=on iommu=pt\n"
    assert plan(host).steps == ()


def test_without_a_boot_loader_it_is_unknown():
    (change, _) = plan(Node()).steps[0].changes
    assert isinstance(change.current, Unknown)


def test_a_part_of_a_word_is_not_the_word():
    host = Node(files={ENTRY: "options ro intel_iommu=off xiommu=pt\n"})
    assert [change.path[-1] for change in plan(host).steps[0].changes] == list(BOTH)


def test_the_line_itself_stays_on_the_node():
    host = grub()
    seen = planning.take(host, {"kernel": FEATURE}, {"kernel": WANT}).seen["kernel"]
    assert "secret" not in str(encode(seen))


def test_undo_brings_back_what_was_there():
    host = grub()
    run(host, KernelWant(arguments=("a=1",)))
    before = host.files[DROP_IN]
    host.unreadable["/boot/grub/grub.cfg"] = "I/O error"
    snapshot = planning.take(host, {"kernel": FEATURE}, {"kernel": WANT})
    assert planning.plan(FEATURE, snapshot, WANT).steps[0].unknowns
    assert host.files[DROP_IN] == before


@pytest.mark.parametrize("folder", ["", "/boot"])
def test_undo_takes_an_argument_from_those_kernels_only_that_lacked_it(folder):
    had, lacked = "/boot/loader/entries/abc-1.conf", "/boot/loader/entries/abc-2.conf"
    before = {
        had: f"linux {folder}/vmlinuz-1\noptions ro iommu=pt\n",
        lacked: f"linux {folder}/vmlinuz-2\noptions ro\n",
    }
    host = Node("AuthenticAMD", before)
    (step,) = plan(host).steps
    assert [(c.path[1], c.current, c.desired) for c in step.changes] == [("iommu=pt", ("/boot/vmlinuz-1",), "iommu=pt")]
    FEATURE.apply(step, host)
    assert plan(host).steps == ()
    back = [replace(c, current=c.desired, desired=c.current) for c in step.changes]
    FEATURE.apply(replace(step, changes=tuple(back), undoes=True), host)
    assert {path: host.files[path] for path in before} == before


def entries(**lines):
    return {
        f"/boot/loader/entries/abc-{kernel}.conf": f"linux /vmlinuz-{kernel}\noptions {line}\n"
        for kernel, line in lines.items()
    }


def test_an_argument_stands_beside_others_of_its_name_whoever_has_set_them():
    """grubby puts an argument in the place of all of its name, of the site's too."""
    before = entries(a="ro console=tty0 nosmt=force", b="ro console=tty0 nosmt=force", c="ro console=ttyS1 quiet")
    wish = KernelWant(arguments=("console=ttyS0,115200", "console=hvc0", "nosmt"))
    host = Node("AuthenticAMD", before)
    (step,) = plan(host, wish).steps
    assert [result.status.value for result in run(host, wish).steps] == ["made"]
    assert plan(host, wish).steps == ()
    both = {"ro", "console=ttyS0,115200", "console=hvc0", "nosmt"}
    after = [set(host.files[path].splitlines()[1].split()[1:]) for path in before]
    assert after == [both | {"console=tty0", "nosmt=force"}] * 2 + [both | {"console=ttyS1", "quiet"}]
    back = [replace(c, current=c.desired, desired=c.current) for c in reversed(step.changes)]
    FEATURE.apply(replace(step, changes=tuple(back), undoes=True), host)
    assert [sorted(host.files[path].split()) for path in before] == [sorted(text.split()) for text in before.values()]


def test_kernels_to_come_get_what_most_have_of_a_name():
    host = Node("AuthenticAMD", entries(a="console=tty0", b="console=tty0", c="ro"))
    run(host, KernelWant(arguments=("console=ttyS0",)))
    assert [argv[1:] for argv in host.writes if argv[0] == "grubby"] == [
        ("--update-kernel=ALL", "--args=console=tty0 console=ttyS0"),
        ("--update-kernel=/boot/vmlinuz-c", "--args=console=ttyS0"),
    ]


def test_what_grubby_would_garble_is_left_alone_and_told():
    before = entries(a='ro dyndbg="file *.c +p"')
    host = Node("AuthenticAMD", before)
    for order in (Order(), Order(check=True)):
        (result,) = converge(host, FEATURE, KernelWant(arguments=("dyndbg=+p", "quiet")), order).steps
        assert result.status.value == "blocked"
        assert "a kernel has dyndbg= with quotes" in result.reason
    assert "file" not in str(encode(planning.take(host, {"kernel": FEATURE}, {"kernel": WANT}).seen["kernel"]))
    assert {path: host.files[path] for path in before} == before
    assert [result.status.value for result in run(host, KernelWant(arguments=("quiet",))).steps] == ["made"]


def test_of_a_kernel_with_two_entries_neither_loses_what_it_has():
    text = "linux /vmlinuz-a\noptions ro console={0}\n"
    names = ("/boot/loader/entries/abc-a.conf", "/boot/loader/entries/abc-a.0~custom.conf")
    host = Node("AuthenticAMD", {name: text.format(tty) for name, tty in zip(names, ("tty0", "ttyS1"), strict=True)})
    run(host, KernelWant(arguments=("console=hvc0",)))
    assert "console=tty0" in host.files[names[0]]
    assert "console=ttyS1" in host.files[names[1]]


def test_a_rescue_kernel_keeps_what_it_has():
    rescue = "/boot/loader/entries/abc-0-rescue.conf"
    before = "linux /vmlinuz-0-rescue-abc\noptions ro console=ttyS7\n"
    host = Node("AuthenticAMD", {**entries(a="ro", b="ro"), rescue: before})
    run(host, KernelWant(arguments=("console=tty0",)))
    assert "console=ttyS7" in host.files[rescue]
