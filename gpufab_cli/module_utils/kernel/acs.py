"""The argument by which the kernel itself sets ACS of a bridge that it finds, before it makes IOMMU groups of it.

``pci=config_acs=FLAGS@DEVICE[;FLAGS@DEVICE...]``: FLAGS are seven characters, ACS source validation the last, each 0, 1
or x, which is as the firmware has it. DEVICE is ``pci:VENDOR:DEVICE``, or a bridge by its place below a root port,
``DOMAIN:BUS:DEV.FN[/DEV.FN...]``, which holds when buses get other numbers. The first entry that fits a bridge counts,
and of several ``config_acs=`` on a command line the last (kernel: admin-guide/kernel-parameters.txt, and
drivers/pci/pci.c, __pci_config_acs and pci_setup).
"""

import re
from dataclasses import dataclass, field
from typing import Dict, FrozenSet, Iterator, List, Tuple, Union

from ..change import ABSENT, Absent, Unknown
from ..devices import PCI_DEVICES, Devices
from ..host import Reader
from ..numa import bridges, pci_config
from .want import AcsWant

OPTION = "config_acs="
CLASS_BRIDGE = "0x060400"
LONGEST = 1900
"""Characters of a command line: COMMAND_LINE_SIZE is 2048 on x86 and arm64, and the boot loader adds words too."""

Release = Tuple[int, int]
SINCE: Release = (6, 15)
BACKPORTS: Dict[Release, int] = {(6, 12): 23, (6, 13): 11, (6, 14): 2}
"""6.11 has it first, but took 0 for x and a second entry for an error; mended by commit 9cf8a952d57b in 6.15 and in
these releases of the stable series."""


@dataclass(frozen=True)
class Model:
    """A bridge's vendor and device, as in 1000:c030, and the ACS controls that it has."""

    model: str
    able: Union[Tuple[str, ...], Absent, Unknown]


@dataclass(frozen=True)
class AcsSeen:
    """What the argument follows from, and what may stand in its way.

    Attributes:
        bridges: those that count and all others of their models, by PCI address.
        guests: PCI functions that are bound to vfio-pci.
        release: the kernel that the next boot takes; the running one where that is not known.
    """

    bridges: Dict[str, Model] = field(default_factory=dict)
    guests: Tuple[str, ...] = ()
    release: str = ""


def gather(host: Reader, devices: Devices, want: AcsWant, release: str) -> AcsSeen:
    """Look at the bridges."""
    judged = bridges.judged(devices, want.use, want.ports)
    models = {pci: _model(host, pci) for pci in _bridges(host)} if judged else {}
    counting = {models[pci] for pci in judged if pci in models}
    found = {pci: Model(model, pci_config.bridge(host, pci).able) for pci, model in models.items() if model in counting}
    return AcsSeen(found, bridges.guests(host), release)


def _bridges(host: Reader) -> Iterator[str]:
    names = host.names(PCI_DEVICES)
    for pci in names if isinstance(names, tuple) else ():
        if host.read(f"{PCI_DEVICES}/{pci}/class") == CLASS_BRIDGE:
            yield pci


def _model(host: Reader, pci: str) -> str:
    words = (host.read(f"{PCI_DEVICES}/{pci}/{name}") for name in ("vendor", "device"))
    return ":".join(str(word).replace("0x", "") for word in words)


def option(devices: Devices, seen: AcsSeen, want: AcsWant) -> Union[str, Unknown]:
    """The option as the tree asks for it, the same whatever ACS is set to now; "" where no bridge counts."""
    lost = [end.pci for end in bridges.ends(devices, want.ports) if not end.above]
    if lost:
        return Unknown(f"{lost[0]}: its place in the PCI tree is not known")
    judged = bridges.judged(devices, want.use, want.ports)
    unknown = [item.able for item in seen.bridges.values() if isinstance(item.able, Unknown)]
    if unknown or not set(judged) <= set(seen.bridges):
        return unknown[0] if unknown else Unknown("a bridge was not looked at")
    flags = {pci: _flags(seen.bridges[pci].able, want) for pci in judged}
    entries = _entries(devices, seen, want, {pci: text for pci, text in flags.items() if text.strip("x")})
    return OPTION + ";".join(entries) if entries else ""


def _flags(able: Union[Tuple[str, ...], Absent, Unknown], want: AcsWant) -> str:
    has = able if isinstance(able, tuple) else ()
    changed, sign = (bridges.REDIRECTING, "0") if want.use == "bare-metal" else (bridges.ISOLATING, "1")
    return "".join(sign if name in has and name in changed else "x" for name in reversed(pci_config.FLAGS))


def _entries(devices: Devices, seen: AcsSeen, want: AcsWant, flags: Dict[str, str]) -> List[str]:
    """One entry for all bridges of a model where each of them is to get the same, else one for each bridge."""
    found: Dict[str, None] = {}
    for pci, text in flags.items():
        model = seen.bridges[pci].model
        alike = {other for other, item in seen.bridges.items() if item.model == model and item.able is not ABSENT}
        one = {flags.get(other) for other in alike} == {text}
        found[f"{text}@pci:{model}" if one else f"{text}@{_place(devices, want, pci)}"] = None
    return list(found)


def _place(devices: Devices, want: AcsWant, pci: str) -> str:
    above = next(end.above for end in bridges.ends(devices, want.ports) if pci in end.above)
    first, *rest = above[1 : above.index(pci) + 1]
    return "/".join([first, *(bridge.rpartition(":")[2] for bridge in rest)])


def obstacle(seen: AcsSeen, want: AcsWant) -> str:
    """Why the kernel is not to be told, or would not do it, in words; "" where it would."""
    if want.use == "bare-metal" and seen.guests:
        return f"{seen.guests[0]} is bound to vfio-pci: a guest relies on ACS"
    if not mended(seen.release):
        return f"kernel {seen.release or 'unknown'} is not known to have {OPTION[:-1]} as it is to be"
    return ""


def no_room(text: str, loader: str, theirs: FrozenSet[str], length: int) -> str:
    """Why the option cannot stand on the command line, in words; "" where it can.

    Args:
        text: the option.
        loader: how the command line is kept, as in KernelSeen.
        theirs: the words of others, and those that the fabric declares besides.
        length: characters of the longest command line without the option.
    """
    rivals = sorted(word for word in theirs if OPTION in word)
    if rivals:
        return f"the site has {rivals[0]} on the command line"
    if loader == "bls" and ";" in text:
        return "it takes several entries, and boot loader entries may not keep a semicolon"
    if length + len(text) > LONGEST:
        return f"the command line would have {length + len(text)} characters"
    return ""


def mended(release: str) -> bool:
    """Whether a kernel of this release sets ACS as the argument says; backports of distributions do not show."""
    match = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", release)
    if match is None:
        return False
    series = (int(match[1]), int(match[2]))
    return series >= SINCE or int(match[3] or 0) >= BACKPORTS.get(series, 1 << 30)
