"""The kernel feature: arguments on the kernel command line, as running and as of the next boot.

It is a feature of its own and not part of sriov because it is about the node, not a port, waits for a reboot where
sriov never does, and serves whoever else needs an argument.
"""

from typing import FrozenSet, Iterable, Iterator, List, Tuple, Union

from ..change import ABSENT, Change, Finding, Impact, Pending, Plan, Step, Unknown, Where
from ..devices import Devices
from ..host import Host, Reader
from ..packages.next_kernel import next_kernel
from ..record import Record
from ..snapshot import Snapshot
from . import acs, bootloader
from .seen import KernelSeen
from .want import KernelWant

FEATURE = "kernel"
LINE = "kernel command line"
CODE = "kernel.argument"
PASSTHROUGH = {"GenuineIntel": ("intel_iommu=on", "iommu=pt"), "AuthenticAMD": ("iommu=pt",)}
"""Intel's IOMMU is off unless asked for, AMD's on (kernel-parameters.txt); another vendor's needs no word."""
PCI = "pci="

Words = Tuple[str, ...]


class Kernel:
    """Kernel arguments, set for the next boot. gpufab never reboots: what is not running yet is pending."""

    name = FEATURE
    want_type = KernelWant
    seen_type = KernelSeen
    restored = False

    def gather(self, host: Reader, devices: Devices, want: KernelWant) -> KernelSeen:
        """See which of the arguments that may be wanted are there, and all that ``pci=`` says."""
        text, lines = host.read("/proc/cmdline"), bootloader.next_lines(host)
        running = (tuple(text.split()),) if isinstance(text, str) else Unknown(str(text))
        pci = _pci(lines)
        passthrough = (word for words in PASSTHROUGH.values() for word in words if want.iommu)
        candidates = (*want.arguments, *passthrough, *pci)
        return KernelSeen(
            vendor=_vendor(host),
            running=_there((*candidates, *_pci(running)), running),
            next_boot=_there(candidates, lines),
            loader=bootloader.loader(host),
            drop_in=host.read(bootloader.DROP_IN),
            some=bootloader.kernels_with(host, candidates),
            garbled=bootloader.garbled(host, {"pci", *map(bootloader.name_of, candidates)}),
            pci=pci,
            length=_length(lines),
            acs=acs.gather(host, devices, want.acs, _release(host)) if want.acs is not None else None,
        )

    def plan(self, snapshot: Snapshot, want: KernelWant) -> Plan:
        """One step for the next boot; what only waits for it is pending."""
        seen: KernelSeen = snapshot.seen[FEATURE]
        recorded = _recorded(snapshot.records.get(FEATURE, ABSENT))
        ours = frozenset(bootloader.words(seen.drop_in)) if seen.loader == "grub" else recorded
        findings: List[Finding] = []
        option = _option(snapshot.devices, seen, want, ours, findings)
        wanted = (*_wanted(seen, want), *((f"{PCI}{option}",) if isinstance(option, str) and option else ()))
        changes = (*_stale(seen, wanted, ours), *_changes(seen, wanted), *_drop_in(seen, wanted))
        if isinstance(option, Unknown):
            told = Change((LINE, f"{PCI}{acs.OPTION}"), option, "what the PCI tree asks for", CODE, Where.NEXT_BOOT)
            changes = (*changes, told)
        step = Step("kernel arguments", changes, blocked=_garbled(seen, changes))
        pending = (*_pending(seen, wanted), *_leaving(seen, wanted, recorded))
        return Plan((step,) if changes else (), pending, tuple(findings))

    def only(self, want: KernelWant, device: str) -> KernelWant:  # noqa: ARG002
        """The wish as a whole: it concerns no device."""
        return want

    def apply(self, step: Step, host: Host) -> None:
        """Write the next boot's command line; one that undoes writes what was there."""
        files = [change for change in step.changes if change.path == (bootloader.DROP_IN,)]
        if files:
            text = files[0].desired
            bootloader.set_grub(host, text if text is ABSENT else text + "\n")
            return
        for change in step.changes:
            if not isinstance(change.desired, str):
                bootloader.take_bls(host, change.path[1], change.desired if isinstance(change.desired, tuple) else ())
        bootloader.add_bls(host, [change.path[1] for change in step.changes if isinstance(change.desired, str)])


def _vendor(host: Reader) -> str:
    text = host.read("/proc/cpuinfo")
    for line in text.splitlines() if isinstance(text, str) else ():
        key, _, value = line.partition(":")
        if key.strip() == "vendor_id":
            return value.strip()
    return ""


def _release(host: Reader) -> str:
    """The kernel that the next boot takes; where that is not known, as good a guess as any is the one that runs."""
    due, running = next_kernel(host), host.read("/proc/sys/kernel/osrelease")
    return due if isinstance(due, str) else running if isinstance(running, str) else ""


def _pci(lines: bootloader.Lines) -> Words:
    """Every ``pci=`` word that stands on any of the lines."""
    words = (word for line in (() if isinstance(lines, Unknown) else lines) for word in line)
    return tuple(dict.fromkeys(word for word in words if word.startswith(PCI)))


def _length(lines: bootloader.Lines) -> int:
    """The characters of the longest line, its ``pci=config_acs=`` aside."""
    found = () if isinstance(lines, Unknown) else lines
    return max((len(" ".join(word for word in line if acs.OPTION not in word)) for line in found), default=0)


def _there(candidates: Words, lines: bootloader.Lines) -> Union[Words, Unknown]:
    """The candidates that stand on every line."""
    if isinstance(lines, Unknown):
        return lines
    return tuple(word for word in dict.fromkeys(candidates) if all(word in line for line in lines))


def _wanted(seen: KernelSeen, want: KernelWant) -> Words:
    passthrough = PASSTHROUGH.get(seen.vendor, ()) if want.iommu else ()
    return tuple(dict.fromkeys((*passthrough, *want.arguments)))


def _recorded(record: Record) -> FrozenSet[str]:
    """The arguments that gpufab has set or seen pending at any time."""
    return frozenset(entry.path[1] for entry in (record if isinstance(record, tuple) else ()) if entry.path[0] == LINE)


def _option(
    devices: Devices, seen: KernelSeen, want: KernelWant, ours: FrozenSet[str], findings: List[Finding]
) -> Union[str, Unknown]:
    """How the kernel is told of ACS; "" where it is not to be, or cannot be, which goes to ``findings``."""
    if want.acs is None:
        return ""
    if seen.acs is None:
        return Unknown("was not looked at")
    text = acs.option(devices, seen.acs, want.acs)
    if isinstance(text, Unknown) or not text:
        return text
    theirs = (frozenset(seen.pci) - ours - {f"{PCI}{text}"}).union(_wanted(seen, want))
    why = acs.obstacle(seen.acs, want.acs) or acs.no_room(text, seen.loader, theirs, seen.length)
    if why:
        findings.append(Finding("kernel.acs", (LINE, f"{PCI}{acs.OPTION}"), why))
    return "" if why else text


def _stale(seen: KernelSeen, wanted: Words, ours: FrozenSet[str]) -> Iterator[Change]:
    """``pci=`` words that gpufab has set and are wanted no more: boot loader entries keep no file of gpufab's."""
    for word in seen.pci if seen.loader == "bls" else ():
        if word in ours and word not in wanted:
            yield Change((LINE, word), word, ABSENT, CODE, Where.NEXT_BOOT)


def _changes(seen: KernelSeen, wanted: Words) -> Iterator[Change]:
    for word in wanted:
        if isinstance(seen.next_boot, Unknown) or word not in seen.next_boot:
            some = seen.some.get(word, ABSENT)
            current = seen.next_boot if isinstance(seen.next_boot, Unknown) else some
            yield Change((LINE, word), current, word, CODE, Where.NEXT_BOOT)


def _drop_in(seen: KernelSeen, wanted: Words) -> Iterator[Change]:
    """The file that GRUB's menu is made from: only where something is missing, or where there is one already."""
    missing = isinstance(seen.next_boot, tuple) and not set(wanted) <= set(seen.next_boot)
    text = bootloader.drop_in(wanted).rstrip("\n") if wanted else ABSENT
    if seen.loader == "grub" and seen.drop_in != text and (missing or seen.drop_in is not ABSENT):
        yield Change((bootloader.DROP_IN,), seen.drop_in, text, CODE, Where.PERSISTED)


def _garbled(seen: KernelSeen, changes: Iterable[Change]) -> str:
    """Why the arguments cannot be set beside others of their name; "" where they can."""
    names = (bootloader.name_of(change.path[1]) for change in changes if change.path[0] == LINE)
    odd = next((name for name in names if name in seen.garbled), "")
    return f"a kernel has {odd}= with quotes or signs of the shell, which grubby would garble" if odd else ""


def _pending(seen: KernelSeen, wanted: Words) -> Iterator[Pending]:
    running = seen.running
    for word in wanted:
        due = isinstance(seen.next_boot, tuple) and word in seen.next_boot
        if due and isinstance(running, tuple) and word not in running:
            yield Pending((LINE, word), ABSENT, word, Impact.REBOOT, CODE)


def _leaving(seen: KernelSeen, wanted: Iterable[str], recorded: FrozenSet[str]) -> Iterator[Pending]:
    """``pci=`` words of gpufab's that run and that the next boot has no more."""
    for word in seen.running if isinstance(seen.running, tuple) else ():
        if word.startswith(PCI) and word in recorded and word not in {*seen.pci, *wanted}:
            yield Pending((LINE, word), word, ABSENT, Impact.REBOOT, CODE)
