"""pci=config_acs: what a node computes, where it stands, what keeps it out, and how it goes again."""

import re
import shlex
import subprocess
from dataclasses import replace

import pytest

from gpufab_cli.module_utils import planning
from gpufab_cli.module_utils.change import ABSENT, Impact, Unknown
from gpufab_cli.module_utils.converge import Order, Status, converge
from gpufab_cli.module_utils.devices import gather
from gpufab_cli.module_utils.features import FEATURES
from gpufab_cli.module_utils.kernel import acs, bootloader
from gpufab_cli.module_utils.kernel.want import AcsWant, KernelWant
from gpufab_cli.module_utils.numa import bridges, pci_config
from gpufab_cli.module_utils.numa.want import NumaWant, PortWant
from tests.fakes import ok
from tests.machine import LabHost
from tests.unit.core.grubby import grubby

FEATURE = FEATURES["kernel"]
MENU = "/boot/grub/grub.cfg"
ENTRY = "/boot/loader/entries/abc-6.15.conf"
SWITCH = "xx000xx@pci:1000:c030"


class Node(LabHost):
    """A machine whose boot loader's tools do what they do."""

    def __init__(self, folder, kind="hgx-h100-ib", rails=2, release="6.15.4-1", loader="grub"):
        super().__init__(folder, kind, rails=rails)
        self.files["/proc/sys/kernel/osrelease"] = release
        self.loader = loader
        self.site(["pci=noaer"])

    def site(self, words):
        """The arguments that are none of gpufab's, running and due."""
        self.own = " ".join(["root=/dev/sda1 ro", *words])
        self.files["/proc/cmdline"] = self.own
        if self.loader == "grub":
            self._answer(("update-grub",))
        else:
            self.files[ENTRY] = f"linux /vmlinuz-6.15\noptions {self.own}\n"

    def _answer(self, argv):
        if argv[0] == "update-grub":
            text = self.files.get(bootloader.DROP_IN, b"").decode()
            script = f'GRUB_CMDLINE_LINUX=quiet\n{text}\nprintf %s "$GRUB_CMDLINE_LINUX"'
            line = subprocess.run(["sh", "-c", script], capture_output=True, text=True, check=True).stdout
            self.files[MENU] = f"menuentry 'x' {{\n\tlinux\t/vmlinuz-6.15 {self.own} {line}\n}}\n"
            return ok("")
        if argv[0] == "grubby":
            grubby(self.files, argv)
            return ok("")
        return super()._answer(argv)

    def reboot(self, boot_id=""):
        """The next boot, its command line as GRUB makes it: a semicolon that is not quoted would end it."""
        self.boot()
        self.files["/proc/sys/kernel/random/boot_id"] = boot_id or self.hardware.state.boot_id
        if MENU in self.files:
            line = re.search(r"linux\t\S+ (.*)", self.files[MENU])[1]
            found = list(shlex.shlex(line, posix=True, punctuation_chars=";"))
            assert ";" not in found
            self.files["/proc/cmdline"] = " ".join(shlex.split(line))
        else:
            self.files["/proc/cmdline"] = self.files[ENTRY].splitlines()[1].partition(" ")[2]


def want(host, use="bare-metal", **more):
    return KernelWant(acs=AcsWant(use, tuple(port.pci for port in host.hardware.machine.ports)), **more)


def plan(host, wish):
    return planning.plan(FEATURE, planning.take(host, {"kernel": FEATURE}, {"kernel": wish}), wish)


def run(host, wish):
    return converge(host, FEATURE, wish, Order())


def config_acs(host):
    """The option that the kernel was started with."""
    words = [word for word in host.files["/proc/cmdline"].split() if word.startswith("pci=")]
    found = [option for word in words for option in word[4:].split(",") if option.startswith("config_acs=")]
    return found[-1].partition("=")[2] if found else None  # a later one takes the place of an earlier


def kernel_sets(host, option):
    """What the kernel makes of it (drivers/pci/pci.c): of each bridge with ACS, the controls that are on."""
    found = {}
    for pci in host.names("/sys/bus/pci/devices"):
        bridge = pci_config.bridge(host, pci)
        if isinstance(bridge.able, tuple):
            found[pci] = set(bridge.acs)
            for entry in option.split(";"):
                flags, _, device = entry.partition("@")
                if fits(host, pci, device):
                    for name, sign in zip(reversed(pci_config.FLAGS), flags, strict=True):
                        {"0": found[pci].discard, "1": found[pci].add, "x": lambda _: None}[sign](name)
                    break
    return found


def fits(host, pci, device):
    folder = f"/sys/bus/pci/devices/{pci}"
    if device.startswith("pci:"):
        return device == f"pci:{host.read(f'{folder}/vendor')[2:]}:{host.read(f'{folder}/device')[2:]}"
    first, *below = device.split("/")
    way = host.link(folder).split("/")
    return first in way and [part.rpartition(":")[2] for part in way[way.index(first) + 1 :]] == below


@pytest.mark.parametrize("use", ["bare-metal", "vms"])
@pytest.mark.parametrize("kind", ["hgx-h100", "hgx-h100-ib", "hgx-a100-nps4", "hgx-b200", "l40s-one-socket"])
def test_the_kernel_sets_each_bridge_that_counts_and_no_other(tmp_path, kind, use):
    host = Node(tmp_path, kind)
    wish = want(host, use)
    run(host, wish)
    host.reboot()
    assert plan(host, wish).clean
    devices, option = gather(host), config_acs(host)
    judged = bridges.judged(devices, use, wish.acs.ports)
    after = kernel_sets(host, option) if option else {}
    for pci in host.names("/sys/bus/pci/devices"):
        bridge = pci_config.bridge(host, pci)
        if isinstance(bridge.able, tuple):
            wanted = bridges.wanted(bridge, use) if pci in judged else bridge.acs
            assert after.get(pci, set(bridge.acs)) == set(wanted), pci
    assert (option is None) == (not any(isinstance(pci_config.bridge(host, pci).able, tuple) for pci in judged))


def test_one_entry_stands_for_all_bridges_of_a_model_that_are_to_get_the_same(tmp_path):
    host = Node(tmp_path)
    run(host, want(host))
    assert f"pci=config_acs={SWITCH}" in host.files[MENU]


def test_a_bridge_of_the_model_that_does_not_count_is_left_alone(tmp_path):
    """The others are then named by their place, which holds when buses get other numbers."""
    host = Node(tmp_path, "hgx-h100")  # its NVSwitches are below switches of the same model
    wish = want(host)
    text = acs.option(gather(host), acs.gather(host, gather(host), wish.acs, "6.15"), wish.acs)
    places = [entry.partition("@")[2] for entry in text.removeprefix("config_acs=").split(";")]
    judged = bridges.judged(gather(host), "bare-metal", wish.acs.ports)
    assert len(places) == len(judged)
    assert all(re.fullmatch(r"0000:[0-9a-f]{2}:[0-9a-f]{2}\.0/00\.0/[0-9a-f]{2}\.0", place) for place in places)
    assert all(sum(fits(host, pci, place) for place in places) == 1 for pci in judged)


def test_it_is_the_same_whatever_acs_is_set_to_now(tmp_path):
    host = Node(tmp_path)
    run(host, want(host))
    ports = tuple(PortWant(f"compute/{n}", port.pci, n) for n, port in enumerate(host.hardware.machine.ports))
    order = Order(allow=frozenset(Impact), busy_ok=True)
    converge(host, FEATURES["numa"], NumaWant(ports, use="bare-metal", set_acs=True), order)
    assert plan(host, want(host)).steps == ()


@pytest.mark.parametrize("loader", ["grub", "bls"])
def test_it_comes_waits_runs_and_goes_again(tmp_path, loader):
    host = Node(tmp_path, loader=loader)
    host.site(["quiet"])
    wish, word = want(host), f"pci=config_acs={SWITCH}"
    assert [result.status for result in run(host, wish).steps] == [Status.MADE]
    found = plan(host, wish)
    assert (found.steps, [(item.path[1], item.waits_for) for item in found.pending]) == ((), [(word, Impact.REBOOT)])
    host.reboot()
    assert plan(host, wish).clean
    without = KernelWant()
    assert [result.status for result in run(host, without).steps] == [Status.MADE]
    assert "config_acs" not in host.files.get(MENU, "") + host.files.get(ENTRY, "")
    assert bootloader.DROP_IN not in host.files
    found = plan(host, without)
    assert found.steps == ()
    assert [(item.path[1], item.running, item.next_boot) for item in found.pending] == [(word, word, ABSENT)]
    host.reboot()
    assert plan(host, without).clean


def test_other_options_of_the_site_and_of_the_fabric_stay(tmp_path):
    host = Node(tmp_path)
    run(host, want(host, arguments=("pci=realloc", "quiet2")))
    host.reboot()
    words = host.files["/proc/cmdline"].split()
    assert {"pci=noaer", "pci=realloc", f"pci=config_acs={SWITCH}", "quiet2"} <= set(words)
    run(host, KernelWant(arguments=("pci=realloc",)))
    host.reboot()
    assert [word for word in host.files["/proc/cmdline"].split() if "pci=" in word] == ["pci=noaer", "pci=realloc"]


def test_the_fabrics_own_words_about_acs_are_not_contradicted(tmp_path):
    host = Node(tmp_path)
    wish = want(host, arguments=("pci=config_acs=xx000xx@pci:1:2",))
    for _ in range(2):
        assert "the site has pci=config_acs=xx000xx@pci:1:2" in plan(host, wish).findings[0].evidence
        run(host, wish)
    assert SWITCH not in host.files[MENU]


def test_boot_loader_entries_keep_the_pci_words_of_the_site(tmp_path):
    host = Node(tmp_path, loader="bls")
    run(host, want(host))
    assert [word for word in host.files[ENTRY].split() if "pci=" in word] == ["pci=noaer", f"pci=config_acs={SWITCH}"]
    run(host, KernelWant())
    assert [word for word in host.files[ENTRY].split() if "pci=" in word] == ["pci=noaer"]


def test_semicolons_reach_the_kernel_through_the_shell_and_grub(tmp_path):
    host = Node(tmp_path)
    word = "pci=config_acs=x0000xx@0000:15:00.0/00.0/01.0;x0000xx@0000:15:00.0/00.0/02.0"
    bootloader.set_grub(host, bootloader.drop_in((word, "a=1")))
    host.reboot()
    assert word in host.files["/proc/cmdline"].split()
    assert word in bootloader.next_lines(host)[0]
    assert bootloader.words(host.files[bootloader.DROP_IN].decode()) == (word, "a=1")


@pytest.mark.parametrize(
    ("release", "knows"),
    [
        ("6.15.0", True),
        ("6.16-rc1", True),
        ("7.0.1", True),
        ("6.14.2-arch1", True),
        ("6.14.0-27-generic", False),  # a distribution's number tells nothing of backports
        ("6.13.11", True),
        ("6.12.22", False),
        ("6.12.38+deb13-amd64", True),
        ("6.11.5", False),
        ("5.14.0-570.el9", False),
        ("", False),
    ],
)
def test_kernels_that_do_what_the_argument_says(release, knows):
    assert acs.mended(release) is knows


@pytest.mark.parametrize(
    ("change", "loader", "words"),
    [
        ({"/proc/sys/kernel/osrelease": "6.8.0-60-generic"}, "grub", "kernel 6.8.0-60-generic is not known to have"),
        ({"/boot/vmlinuz-6.8.0-60-generic": ""}, "grub", "kernel 6.8.0-60-generic is not known to have"),
        (
            {MENU: "\tlinux\t/vmlinuz-6.15 pci=noaer,config_acs=0@pci:0:0\n"},
            "grub",
            "the site has pci=noaer,config_acs=",
        ),
        ({MENU: f"\tlinux\t/vmlinuz-6.15 {'a' * 1890}\n"}, "grub", "the command line would have 1922 characters"),
    ],
)
def test_what_keeps_it_out_is_told_and_nothing_is_written(tmp_path, change, loader, words):
    host = Node(tmp_path, loader=loader)
    host.files.update(change)
    found = plan(host, want(host))
    assert found.steps == ()
    assert [(finding.code, finding.unknown) for finding in found.findings] == [("kernel.acs", False)]
    assert words in found.findings[0].evidence


def test_a_list_is_not_given_to_boot_loader_entries(tmp_path):
    assert "semicolon" in acs.no_room("config_acs=0@pci:1:2;0@pci:3:4", "bls", frozenset(), 10)


def test_isolation_that_a_guest_relies_on_is_not_taken_at_the_next_boot(tmp_path):
    host = Node(tmp_path)
    run(host, want(host))
    real = host.names
    host.names = lambda path: ("0000:18:00.2", "bind") if path.endswith("/vfio-pci") else real(path)
    assert "a guest relies on ACS" in plan(host, want(host)).findings[0].evidence
    run(host, want(host))
    assert "config_acs" not in host.files[MENU]
    assert plan(host, want(host, "vms")).findings == ()


def test_without_root_it_is_unknown_and_what_stands_there_stays(tmp_path):
    host = Node(tmp_path)
    run(host, want(host))
    host._uid = 1000
    (step,) = plan(host, want(host)).steps
    assert step.unknowns
    assert run(host, want(host)).steps[0].status is Status.UNKNOWN
    assert "config_acs" in host.files[MENU]


def test_devices_whose_place_is_not_known_leave_it_unknown(tmp_path):

    host = Node(tmp_path)
    devices = replace(gather(host), gpus=tuple(replace(gpu, above=()) for gpu in gather(host).gpus))
    assert isinstance(acs.option(devices, acs.AcsSeen({}, (), "6.15"), want(host).acs), Unknown)
