"""The kernel feature: arguments on the kernel command line, as running and as of the next boot.

It is a feature of its own and not part of sriov because it is about the node, not a port, waits for a reboot where
sriov never does, and serves whoever else needs an argument.
"""

from typing import Iterator, Tuple

from ..change import ABSENT, Change, Impact, Pending, Plan, Step, Unknown, Where
from ..devices import Devices
from ..host import Host, Reader
from ..snapshot import Snapshot
from . import bootloader
from .seen import KernelSeen
from .want import KernelWant

FEATURE = "kernel"
LINE = "kernel command line"
CODE = "kernel.argument"
PASSTHROUGH = {"GenuineIntel": ("intel_iommu=on", "iommu=pt"), "AuthenticAMD": ("iommu=pt",)}
"""Intel's IOMMU is off unless asked for, AMD's on (kernel-parameters.txt); another vendor's needs no word."""


class Kernel:
    """Kernel arguments, set for the next boot. gpufab never reboots: what is not running yet is pending."""

    name = FEATURE
    want_type = KernelWant
    seen_type = KernelSeen
    restored = False

    def gather(self, host: Reader, devices: Devices, want: KernelWant) -> KernelSeen:  # noqa: ARG002
        """See which of the arguments that may be wanted are there."""
        candidates = (*want.arguments, *(word for words in PASSTHROUGH.values() for word in words if want.iommu))
        running, lines = host.read("/proc/cmdline"), bootloader.next_lines(host)
        return KernelSeen(
            vendor=_vendor(host),
            running=_there(candidates, (tuple(running.split()),))
            if isinstance(running, str)
            else Unknown(str(running)),
            next_boot=lines if isinstance(lines, Unknown) else _there(candidates, lines),
            loader=bootloader.loader(host),
            drop_in=host.read(bootloader.DROP_IN),
            some=bootloader.kernels_with(host, candidates),
        )

    def plan(self, snapshot: Snapshot, want: KernelWant) -> Plan:
        """One step for the next boot; what only waits for it is pending."""
        seen: KernelSeen = snapshot.seen[FEATURE]
        changes = (*_changes(seen, _wanted(seen, want)), *_drop_in(seen, _wanted(seen, want)))
        step = Step("kernel arguments", changes)
        return Plan((step,) if changes else (), tuple(_pending(seen, _wanted(seen, want))))

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
            if isinstance(change.desired, tuple):
                bootloader.leave_bls(host, change.path[1], change.desired)
            else:
                bootloader.set_bls(host, change.path[1], there=change.desired is not ABSENT)


def _vendor(host: Reader) -> str:
    text = host.read("/proc/cpuinfo")
    for line in text.splitlines() if isinstance(text, str) else ():
        key, _, value = line.partition(":")
        if key.strip() == "vendor_id":
            return value.strip()
    return ""


def _there(candidates: Tuple[str, ...], lines: Tuple[Tuple[str, ...], ...]) -> Tuple[str, ...]:
    """The candidates that stand on every line."""
    return tuple(word for word in dict.fromkeys(candidates) if all(word in line for line in lines))


def _wanted(seen: KernelSeen, want: KernelWant) -> Tuple[str, ...]:
    passthrough = PASSTHROUGH.get(seen.vendor, ()) if want.iommu else ()
    return tuple(dict.fromkeys((*passthrough, *want.arguments)))


def _changes(seen: KernelSeen, wanted: Tuple[str, ...]) -> Iterator[Change]:
    for word in wanted:
        if isinstance(seen.next_boot, Unknown) or word not in seen.next_boot:
            some = seen.some.get(word, ABSENT)
            current = seen.next_boot if isinstance(seen.next_boot, Unknown) else some
            yield Change((LINE, word), current, word, CODE, Where.NEXT_BOOT)


def _drop_in(seen: KernelSeen, wanted: Tuple[str, ...]) -> Iterator[Change]:
    """The file that GRUB's menu is made from: only where something is missing, or where there is one already."""
    missing = isinstance(seen.next_boot, tuple) and not set(wanted) <= set(seen.next_boot)
    text = bootloader.drop_in(wanted).rstrip("\n")
    if seen.loader == "grub" and seen.drop_in != text and (missing or seen.drop_in is not ABSENT):
        yield Change((bootloader.DROP_IN,), seen.drop_in, text, CODE, Where.PERSISTED)


def _pending(seen: KernelSeen, wanted: Tuple[str, ...]) -> Iterator[Pending]:
    running = seen.running
    for word in wanted:
        due = isinstance(seen.next_boot, tuple) and word in seen.next_boot
        if due and isinstance(running, tuple) and word not in running:
            yield Pending((LINE, word), ABSENT, word, Impact.REBOOT, CODE)
