"""Which PCI Express bridges matter for peer-to-peer traffic or isolation, and what their ACS has to be.

Access control services have a switch send traffic between its ports up to the CPU instead, which isolates devices given
to guests and takes GPUDirect its way. What to set is computed for each bridge from its place in the tree; one value for
all would take isolation where it is needed, or leave redirection where it hurts.
"""

from typing import Dict, Iterable, Iterator, List, Optional, Tuple, Union

from ..change import ABSENT, Change, Finding, Impact, Step, Unknown
from ..devices import Devices, Gpu, Nic
from ..host import Reader
from ..topology.relation import between, bridges, relation
from .pci_config import FLAGS
from .seen import BridgeSeen, NumaSeen
from .want import NumaWant, Use

REDIRECTING = frozenset({"ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl"})
"""What turns traffic between two ports away; SrcValid, TransBlk and DirectTrans leave its way alone."""
ISOLATING = frozenset({"SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd"})
"""What the kernel turns on for isolation (drivers/pci/pci.c, pci_std_enable_acs)."""
ISOLATES = frozenset({"root-port", "downstream"})
VFIO = "/sys/bus/pci/drivers/vfio-pci"
CODE = "numa.acs"


def judged(devices: Devices, use: Optional[Use], ports: Iterable[str]) -> Tuple[str, ...]:
    """The bridges whose ACS counts for this use of GPUs and ports, by address."""
    if use is None:
        return ()
    every = ends(devices, ports)
    if use == "vms":
        return tuple(sorted({bridge for end in every for bridge in bridges(end)}))
    pairs = ((gpu, end) for gpu in devices.gpus for end in every if end.pci != gpu.pci)
    near = (between(gpu, end) for gpu, end in pairs if relation(gpu, end, devices.numa).near)
    return tuple(sorted({bridge for path in near for bridge in path}))


def ends(devices: Devices, ports: Iterable[str]) -> List[Union[Gpu, Nic]]:
    """The GPUs and the ports at these addresses, whose traffic it is about."""
    wanted = set(ports)
    return [*devices.gpus, *(nic for nic in devices.nics if nic.pci in wanted)]


def guests(host: Reader) -> Tuple[str, ...]:
    """The PCI functions that are bound to vfio-pci: a guest may rely on their isolation."""
    names = host.names(VFIO)
    return tuple(name for name in (names if isinstance(names, tuple) else ()) if ":" in name)


def wanted(bridge: BridgeSeen, use: str) -> Tuple[str, ...]:
    """What has to be on of what the bridge has, the rest as it is found."""
    on = set(bridge.acs) if isinstance(bridge.acs, tuple) else set()
    able = set(bridge.able) if isinstance(bridge.able, tuple) else ISOLATING
    on = on - REDIRECTING if use == "bare-metal" else on | (ISOLATING & able)
    return tuple(name for name in FLAGS if name in on)


def plan(devices: Devices, seen: NumaSeen, want: NumaWant) -> Tuple[List[Step], List[Finding]]:
    """One step for all bridges where ACS is to be set, else a finding for each that is not as it should be."""
    if want.use is None:
        return [], []
    use = want.use
    changes = tuple(_changes(seen, use))
    findings = [*_unplaced(devices, want), *_missing(seen, use), *_iommu(seen, use)]
    if not want.set_acs:
        return [], [*findings, *_harmless(seen, use), *(_as_finding(change) for change in changes)]
    step = Step("numa acs", changes, frozenset({Impact.TRAFFIC}), blocked=_guests(seen, use))
    return ([step] if changes else []), findings


def _guests(seen: NumaSeen, use: str) -> str:
    """Who would lose isolation."""
    relied = use == "bare-metal" and seen.guests
    return f"{seen.guests[0]} is bound to vfio-pci: a guest relies on ACS" if relied else ""


def _changes(seen: NumaSeen, use: str) -> Iterator[Change]:
    for pci, bridge in seen.bridges.items():
        desired = wanted(bridge, use)
        if bridge.acs is not ABSENT and bridge.acs != desired:
            yield Change((pci, "acs"), bridge.acs, desired, CODE)


def _as_finding(change: Change) -> Finding:
    if isinstance(change.current, Unknown):
        return Finding(CODE, change.path, change.current.reason, unknown=True)
    on, wished = set(change.current), set(change.desired)
    too_much = [name for name in FLAGS if name in on - wished]
    words = f"{' '.join(too_much)} on" if too_much else f"{' '.join(n for n in FLAGS if n in wished - on)} off"
    return Finding(CODE, change.path, words)


def _unplaced(devices: Devices, want: NumaWant) -> Iterator[Finding]:
    """Devices whose place in the PCI tree is not known: nobody can tell which bridges are theirs."""
    for end in ends(devices, want.addresses):
        if not end.above:
            yield Finding(CODE, (end.pci, "acs"), "its place in the PCI tree is not known", unknown=True)


def _missing(seen: NumaSeen, use: str) -> Iterator[Finding]:
    for pci, bridge in seen.bridges.items():
        if use == "vms" and bridge.acs is ABSENT and bridge.kind in ISOLATES:
            yield Finding("numa.acs-missing", (pci, "acs"), f"a {bridge.kind} without ACS: all below it is one group")


def _harmless(seen: NumaSeen, use: str) -> Iterator[Finding]:
    for pci, bridge in seen.bridges.items():
        if use == "bare-metal" and bridge.acs == ("SrcValid",):
            yield Finding("numa.acs-source", (pci, "acs"), "SrcValid on: it redirects nothing")


def _iommu(seen: NumaSeen, use: str) -> Iterator[Finding]:
    """All devices of one kind are told together."""
    groups: Dict[str, List[str]] = {}
    for pci, domain in seen.domains.items():
        if isinstance(domain, Unknown):
            yield Finding("numa.iommu-translated", (pci, "iommu"), domain.reason, unknown=True)
        elif domain is ABSENT:
            groups.setdefault("off", []).append(pci)
        elif str(domain).startswith("DMA"):
            groups.setdefault("translated", []).append(pci)
    if use == "bare-metal" and "translated" in groups:
        words = f"DMA of {len(groups['translated'])} GPUs and ports is translated, not passed through"
        yield Finding("numa.iommu-translated", ("iommu",), words)
    if use == "vms" and "off" in groups:
        yield Finding("numa.iommu-off", ("iommu",), f"{len(groups['off'])} GPUs and ports are in no IOMMU group")
