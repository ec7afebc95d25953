"""What the spec wants of one node so that interrupts, memory and PCI Express fit its GPUs and NICs."""

from dataclasses import dataclass
from typing import Annotated, Dict, Literal, Optional, Tuple

from ..schema import Doc, Guid, MacAddress, Pattern, PciAddress, Range

PageSize = Annotated[str, Pattern(r"[1-9][0-9]{0,3}[KMG]", "a page size such as 2M or 1G")]
Pages = Annotated[int, Range(0, 2**24)]
Thp = Literal["always", "madvise", "never"]
Use = Literal["bare-metal", "vms"]


@dataclass(frozen=True)
class PortWant:
    """One RDMA port, pinned by the lock."""

    rail: Annotated[str, Doc("Name of the port in the fabric, network/rail, such as compute/3.")]
    pci: Annotated[PciAddress, Doc("PCI address of the port's function.")]
    position: Annotated[
        Annotated[int, Range(0, 4095)],
        Doc("Its number among the host's RDMA ports, from 0; says at which CPU its interrupts begin."),
    ]
    mac: Annotated[Optional[MacAddress], Doc("Permanent MAC address of an Ethernet port.")] = None
    guid: Annotated[Optional[Guid], Doc("Node GUID of an InfiniBand port.")] = None
    serial: Annotated[Optional[str], Doc("Serial number of the card.")] = None
    psid: Annotated[Optional[str], Doc("Board id (PSID) of the card's firmware.")] = None


@dataclass(frozen=True)
class SharedSubnet:
    """ARP and reverse-path settings of each interface whose subnet another port of the node is in as well."""

    arp_ignore: Annotated[
        Optional[Annotated[int, Range(0, 2)]], Doc("Which ARP requests are answered; 1: those for the interface's own.")
    ] = None
    arp_announce: Annotated[
        Optional[Annotated[int, Range(0, 2)]],
        Doc("Which source address ARP requests name; 2: the best one."),
    ] = None
    rp_filter: Annotated[Optional[Annotated[int, Range(0, 2)]], Doc("Reverse-path filter; 2: loose, 0: off.")] = None


@dataclass(frozen=True)
class NumaWant:
    """Everything the numa feature is told about one node. A field that is None is not managed."""

    ports: Annotated[Tuple[PortWant, ...], Doc("The RDMA ports of the node.")] = ()
    irq: Annotated[
        Optional[Literal["local"]], Doc("local: each port's interrupts on CPUs of its NUMA node, one CPU each.")
    ] = None
    irqbalance: Annotated[
        Optional[bool], Doc("Whether irqbalance is told to leave the interrupts of the ports alone.")
    ] = None
    balancing: Annotated[Optional[bool], Doc("Whether the kernel moves pages between nodes (numa_balancing).")] = None
    zone_reclaim: Annotated[Optional[Annotated[int, Range(0, 7)]], Doc("vm.zone_reclaim_mode.")] = None
    transparent_hugepages: Annotated[Optional[Thp], Doc("When the kernel uses huge pages by itself.")] = None
    hugepages: Annotated[
        Optional[Dict[PageSize, Pages]], Doc("Huge pages on each NUMA node with CPUs and memory, by their size.")
    ] = None
    shared_subnet: Annotated[
        Optional[SharedSubnet], Doc("Settings of the interfaces of ports that share a subnet.")
    ] = None
    max_read_request: Annotated[
        Optional[Annotated[int, Range(128, 4096)]], Doc("Largest PCI Express read request of each port, in bytes.")
    ] = None
    use: Annotated[
        Optional[Use], Doc("Who uses GPUs and NICs; ACS and the IOMMU are judged by it: bare-metal or vms.")
    ] = None
    set_acs: Annotated[Optional[bool], Doc("Whether ACS is set, now and at every boot, and not only judged.")] = None
    nodes: Annotated[
        Optional[Annotated[int, Range(1, 64)]], Doc("How many NUMA nodes have CPUs, such as 8 for two sockets at NPS4.")
    ] = None

    @property
    def addresses(self) -> Tuple[str, ...]:
        """The PCI addresses of the ports."""
        return tuple(port.pci for port in self.ports)
