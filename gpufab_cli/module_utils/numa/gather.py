"""Look at interrupts, memory and PCI Express of one node, as far as the wish is about them."""

from typing import Dict, Iterable, Iterator, Set, Tuple, Union

from ..change import ABSENT, Absent, Unknown
from ..devices import PCI_DEVICES, Devices, Nic
from ..host import Reader
from ..topology.cpus import format_cpus
from ..topology.numa import CPUS, cores
from . import bridges, irqbalance, irqs, memory, pci_config, shared, sysctls
from .seen import Cores, IrqbalanceSeen, NumaSeen, PortSeen, Text
from .want import NumaWant, PortWant

ISOLATED = (f"{CPUS}/isolated", f"{CPUS}/nohz_full", "/sys/fs/cgroup/cpuset.cpus.isolated")
"""CPUs that the kernel's arguments or an isolated partition of control groups keep for somebody."""
GROUPS = "/sys/kernel/iommu_groups"


def gather(host: Reader, devices: Devices, want: NumaWant) -> NumaSeen:
    """Read what the wish is about, and who else sets it."""
    withheld = _withheld(host) if want.irq else ()
    return NumaSeen(
        ports={port.pci: _port(host, devices, want, port) for port in want.ports},
        cores=_cores(host, devices, want.ports, withheld) if want.irq else {},
        withheld=format_cpus(withheld),
        irqbalance=irqbalance.read(host) if want.irqbalance else IrqbalanceSeen(),
        settings=_settings(host, want),
        hugepages=memory.hugepages(host, devices.numa, want.hugepages or ()),
        every={name: sysctls.read(host, sysctls.of_interface("all", name)) for name in sysctls.ARP}
        if want.shared_subnet
        else {},
        contradictions=sysctls.contradictions(host, _wanted_sysctls(devices, want)),
        bridges={pci: pci_config.bridge(host, pci) for pci in bridges.judged(devices, want.use, want.addresses)},
        domains=_domains(host, devices, want) if want.use else {},
        guests=bridges.guests(host) if want.use else (),
    )


def _port(host: Reader, devices: Devices, want: NumaWant, port: PortWant) -> PortSeen:
    nic = devices.nic(port.pci)
    if nic is None:
        return PortSeen()
    found: irqs.Found = irqs.read(host, port.pci) if want.irq else (ABSENT, ())
    wanted = shared.wanted(devices, nic, want.shared_subnet)
    return PortSeen(
        irqs=found[0],
        managed=found[1],
        sysctls={key: sysctls.read(host, sysctls.of_interface(*key.split("/"))) for key in wanted},
        max_read_request=pci_config.max_read_request(host, port.pci) if want.max_read_request else ABSENT,
    )


def _withheld(host: Reader) -> Tuple[int, ...]:
    found: Set[int] = set()
    for path in ISOLATED:
        text = host.read(path)
        # nohz_full reads "(null)" where the kernel was not told of any.
        found.update(irqs.parsed(text) or () if isinstance(text, str) else ())
    return tuple(sorted(found))


def _cores(host: Reader, devices: Devices, ports: Iterable[PortWant], withheld: Tuple[int, ...]) -> Dict[str, Cores]:
    found: Dict[str, Cores] = {}
    for nic in _nics(devices, ports):
        node = devices.numa.local(nic.numa_node)
        if node is not None and str(node.id) not in found:
            cpus = irqs.parsed(node.cpus)
            usable = [cpu for cpu in cpus or () if cpu not in withheld]
            unknown = Unknown(f"the CPUs of NUMA node {node.id} cannot be read")
            found[str(node.id)] = unknown if cpus is None else cores(host, usable)
    return found


def _nics(devices: Devices, ports: Iterable[PortWant]) -> Iterator[Nic]:
    yield from (nic for port in ports if (nic := devices.nic(port.pci)) is not None)


def _settings(host: Reader, want: NumaWant) -> Dict[str, Text]:
    found = {name: sysctls.read(host, path) for name, path in sysctls.NODE.items() if getattr(want, name) is not None}
    if want.transparent_hugepages is not None:
        found["transparent_hugepages"] = memory.transparent(host)
    return found


def _wanted_sysctls(devices: Devices, want: NumaWant) -> Dict[str, str]:
    wishes = {path: getattr(want, name) for name, path in sysctls.NODE.items()}
    found = {path: str(int(value)) for path, value in wishes.items() if value is not None}
    for nic in _nics(devices, want.ports):
        wanted = shared.wanted(devices, nic, want.shared_subnet)
        found.update({sysctls.of_interface(*key.split("/")): value for key, value in wanted.items()})
    return found


def _domains(host: Reader, devices: Devices, want: NumaWant) -> Dict[str, Text]:
    functions = [*(gpu.pci for gpu in devices.gpus), *(nic.pci for nic in _nics(devices, want.ports))]
    return {pci: _domain(host, pci) for pci in functions}


def _domain(host: Reader, pci: str) -> Union[str, Absent, Unknown]:
    """How the IOMMU treats a function; ABSENT: it is in no group, so that there is no IOMMU for it."""
    group = host.link(f"{PCI_DEVICES}/{pci}/iommu_group")
    if not isinstance(group, str):
        return group
    number = group.rpartition("/")[2]
    kind = host.read(f"{GROUPS}/{number}/type")
    return Unknown(f"the kernel does not say how group {number} is translated") if kind is ABSENT else kind
