"""Decide what would change in a node's interrupts, memory and PCI Express. Pure."""

from dataclasses import replace
from typing import Iterator, Tuple

from .. import identity
from ..change import ABSENT, Change, Finding, Impact, Plan, Step, Unknown, Where
from ..devices import Devices, Nic
from ..snapshot import Snapshot
from ..texts import natural
from . import bridges, irq_plan, irqbalance, shared
from .seen import NumaSeen, Text
from .sysctls import ARP
from .want import NumaWant, PortWant

FEATURE = "numa"
UNREAD = Unknown("was not looked at")
CODES = {
    "balancing": "numa.balancing",
    "zone_reclaim": "numa.zone-reclaim",
    "transparent_hugepages": "numa.transparent-hugepages",
}


def plan(snapshot: Snapshot, want: NumaWant) -> Plan:
    """A step each for irqbalance, the kernel's settings, ACS, each port, its subnet, and huge pages at last."""
    seen: NumaSeen = snapshot.seen[FEATURE]
    acs, findings = bridges.plan(snapshot.devices, seen, want)
    parts = [Step("numa irqbalance", tuple(_irqbalance(seen, want)), blocked=_policy_taken(seen, want))]
    parts += [Step("numa kernel", tuple(_kernel(seen, want))), *acs]
    for port in want.ports:
        nic = snapshot.devices.nic(port.pci)
        problem = identity.problem(snapshot.devices, port, nic, port.guid)
        if problem is not None or nic is None:
            findings += [problem] if problem is not None else []
            continue
        findings += _port_findings(snapshot.devices, seen, want, port, nic)
        parts += [_port(snapshot.devices, seen, want, port, nic), _subnet(snapshot.devices, seen, want, port, nic)]
    parts.append(Step("numa hugepages", tuple(_hugepages(seen, want))))
    findings += [*_unsupported(seen, want), *_placeless(seen, want)]
    findings += [*_contradicted(seen), *_nodes(snapshot.devices, want)]
    return Plan(tuple(step for step in parts if step.changes), findings=tuple(findings))


def _irqbalance(seen: NumaSeen, want: NumaWant) -> Iterator[Change]:
    """Its files where it is installed, and that the process which runs has read them."""
    state = seen.irqbalance
    if not (want.irqbalance and want.ports and state.files):
        return
    site = state.arguments
    stale = False
    for path, text in irqbalance.contents(site if isinstance(site, str) else "", want.addresses).items():
        if isinstance(site, Unknown) or state.files[path] != text:
            found = site if isinstance(site, Unknown) else state.files[path]
            stale = True
            yield Change((path,), found, text, "numa.irqbalance", Where.PERSISTED)
    if state.running and (stale or not state.told):
        found = "that of older files" if state.told else "none of gpufab's"
        yield Change(irqbalance.PROCESS, found, "gpufab's", "numa.irqbalance")


def _policy_taken(seen: NumaSeen, want: NumaWant) -> str:
    site = seen.irqbalance.arguments
    taken = bool(want.irqbalance) and isinstance(site, str) and irqbalance.has_own_policy(site)
    return f"the site gives irqbalance a policy of its own: {site}" if taken else ""


def _kernel(seen: NumaSeen, want: NumaWant) -> Iterator[Change]:
    for name, current, desired in _settings(seen, want):
        if current not in (desired, ABSENT):
            yield Change(("kernel", name), current, desired, CODES[name])


def _settings(seen: NumaSeen, want: NumaWant) -> Iterator[Tuple[str, Text, str]]:
    """Each setting of the node that is wanted, as it is and as it is to be."""
    for name in CODES:
        wish = getattr(want, name)
        if wish is not None:
            yield name, seen.settings.get(name, UNREAD), str(int(wish)) if isinstance(wish, (bool, int)) else wish


def _unsupported(seen: NumaSeen, want: NumaWant) -> Iterator[Finding]:
    """What this kernel does not have. That it does not do what is to be off is as wished."""
    for name, current, desired in _settings(seen, want):
        if current is ABSENT and desired not in ("0", "never"):
            yield Finding("numa.unsupported", ("kernel", name), "this kernel has no such setting")
    for place, found in seen.hugepages.items():
        if found is ABSENT and (want.hugepages or {}).get(place.partition("/")[2]):
            yield Finding("numa.unsupported", ("hugepages", place), "this kernel has no pages of this size")


def _placeless(seen: NumaSeen, want: NumaWant) -> Iterator[Finding]:
    """Every machine has a node with CPUs and memory: where none is known, so is nothing of its huge pages."""
    if want.hugepages and not seen.hugepages:
        words = "no NUMA node with CPUs and memory could be read"
        yield Finding("numa.hugepages", ("hugepages",), words, unknown=True)


def _hugepages(seen: NumaSeen, want: NumaWant) -> Iterator[Change]:
    for place, current in seen.hugepages.items():
        count = (want.hugepages or {}).get(place.partition("/")[2])
        if count is not None and current not in (str(count), ABSENT):
            yield Change(("hugepages", place), current, str(count), "numa.hugepages")


def _port(devices: Devices, seen: NumaSeen, want: NumaWant, port: PortWant, nic: Nic) -> Step:
    """What is set of one port itself."""
    changes = (*_irqs(devices, seen, want, port, nic), *_request(seen, want, port))
    return _careful(Step(f"{FEATURE} {port.rail}", changes, device=port.pci), nic)


def _subnet(devices: Devices, seen: NumaSeen, want: NumaWant, port: PortWant, nic: Nic) -> Step:
    """ARP and reverse path of its interfaces. What is answered or let in no more may be what somebody relies on."""
    changes = tuple(_sysctls(devices, seen, want, port, nic))
    stricter = any(shared.stricter(change, seen.every) for change in changes)
    impact = frozenset({Impact.TRAFFIC}) if stricter else frozenset()
    return _careful(Step(f"{FEATURE} {port.rail} subnet", changes, impact, port.pci), nic)


def _careful(step: Step, nic: Nic) -> Step:
    """A port that the node depends on needs consent, as everywhere."""
    impact = frozenset(impact for netdev in nic.netdevs for impact in identity.management(netdev))
    blocked = next((words for netdev in nic.netdevs if (words := identity.undecidable(netdev))), "")
    return replace(step, impact=step.impact | impact, blocked=blocked)


def _irqs(devices: Devices, seen: NumaSeen, want: NumaWant, port: PortWant, nic: Nic) -> Iterator[Change]:
    if want.irq is not None:
        yield from irq_plan.changes(devices, seen, port, nic)


def _sysctls(devices: Devices, seen: NumaSeen, want: NumaWant, port: PortWant, nic: Nic) -> Iterator[Change]:
    found = seen.ports[port.pci].sysctls
    for key, desired in shared.wanted(devices, nic, want.shared_subnet).items():
        current = found.get(key, UNREAD)
        if current != desired:
            yield Change((port.pci, key), current, desired, "numa.shared-subnet")


def _request(seen: NumaSeen, want: NumaWant, port: PortWant) -> Iterator[Change]:
    current = seen.ports[port.pci].max_read_request
    if want.max_read_request and current not in (want.max_read_request, ABSENT):
        yield Change((port.pci, "max_read_request"), current, want.max_read_request, "numa.max-read-request")


def _port_findings(devices: Devices, seen: NumaSeen, want: NumaWant, port: PortWant, nic: Nic) -> Iterator[Finding]:
    if want.irq is not None:
        yield from irq_plan.findings(devices, seen, port, nic)
    if want.max_read_request and seen.ports[port.pci].max_read_request is ABSENT:
        yield Finding("numa.unsupported", (port.pci, "max_read_request"), "it is no PCI Express function")
    sharing = shared.sharing(devices, nic)
    yield from _untold(want, port, nic)
    if sharing and want.shared_subnet is None:
        words = "its subnet is also that of another port, and the fabric does not say what to do about ARP"
        yield from (Finding("numa.shared-subnet", (port.pci, name), words) for name in sharing)
    elif sharing and want.shared_subnet is not None:
        yield from _overruled(seen, want, port)


def _untold(want: NumaWant, port: PortWant, nic: Nic) -> Iterator[Finding]:
    """Addresses that are not known: nobody can tell whether the port shares a subnet."""
    for netdev in nic.netdevs:
        if want.shared_subnet is not None and isinstance(netdev.addresses, Unknown):
            yield Finding("numa.shared-subnet", (port.pci, netdev.name), netdev.addresses.reason, unknown=True)


def _overruled(seen: NumaSeen, want: NumaWant, port: PortWant) -> Iterator[Finding]:
    """The kernel takes the larger of the interface's value and that of all; the latter is the site's."""
    for name in ARP:
        desired, every = getattr(want.shared_subnet, name), natural(seen.every.get(name, ABSENT))
        if desired is not None and every is not None and every > desired:
            words = f"net.ipv4.conf.all.{name} is {every}, which the kernel prefers to {desired}"
            yield Finding("numa.sysctl-overruled", (port.pci, name), words)


def _contradicted(seen: NumaSeen) -> Iterator[Finding]:
    for file, name, value in seen.contradictions:
        words = f"{file} sets it to {value} whenever sysctl settings are loaded"
        yield Finding("numa.sysctl-contradicted", ("sysctl", name), words)


def _nodes(devices: Devices, want: NumaWant) -> Iterator[Finding]:
    if want.nodes is None:
        return
    found = len(devices.numa.with_cpus)
    if found != want.nodes:
        words = f"{found} NUMA nodes have CPUs, {want.nodes} are declared" if found else "the NUMA nodes are not known"
        yield Finding("numa.nodes", ("nodes",), words, unknown=not found)
