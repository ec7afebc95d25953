"""What a profile may say of interrupts, memory and PCI Express next to its GPUs and NICs."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import model_validator

from gpufab_cli.module_utils.numa.want import Pages, PageSize, Thp, Use
from gpufab_cli.module_utils.schema import Range
from gpufab_cli.spec.base import Model
from gpufab_cli.spec.faults import Fault, raise_any

if TYPE_CHECKING:
    from gpufab_cli.spec.model import Profile

ReadRequest = Literal[128, 256, 512, 1024, 2048, 4096]


class SharedSubnet(Model):
    """Settings of each interface whose IPv4 subnet another port of the host is in as well; no others are touched."""

    arp_ignore: Annotated[int, Range(0, 2)] | None = 1
    """1: an interface answers ARP for its own addresses only; 2: and only to senders of its subnet."""
    arp_announce: Annotated[int, Range(0, 2)] | None = 2
    """2: ARP requests name the address that fits the target best; 0: any that the host has."""
    rp_filter: Annotated[int, Range(0, 2)] | None = 2
    """2: packets may come in where answers would not go out, as with several ports in a subnet; 1 drops them."""


class Numa(Model):
    """Interrupts, memory and PCI Express of each host. What is left out is not managed."""

    nodes: Annotated[int, Range(1, 64)] | None = None
    """How many NUMA nodes have CPUs, such as 8 for two sockets at NPS4; only checked."""
    irq: Literal["local"] | None = None
    """local: interrupts of RDMA ports on CPUs of the port's NUMA node, one each; irqbalance is told to leave them."""
    balancing: bool | None = None
    """Whether the kernel moves pages to where they are used (kernel.numa_balancing); false where ranks are bound."""
    zone_reclaim: Annotated[int, Range(0, 7)] | None = None
    """vm.zone_reclaim_mode; 0: memory of another node is taken before this node's page cache is dropped."""
    transparent_hugepages: Thp | None = None
    """When the kernel uses huge pages by itself: always, madvise or never."""
    hugepages: dict[PageSize, Pages] | None = None
    """Huge pages on each NUMA node with CPUs and memory, such as {2M: 1024, 1G: 4}."""
    shared_subnet: SharedSubnet | None = None
    """What is set where RDMA ports share a subnet; {} for the usual values. Without it that is only reported."""
    max_read_request: ReadRequest | None = None
    """Largest PCI Express read request of RDMA ports in bytes; 4096 is what their makers advise."""
    use: Use | None = None
    """Who uses GPUs and NICs: bare-metal (ACS off between them) or vms (ACS on). ACS and the IOMMU are judged by it."""
    acs: Literal["judge", "set", "kernel-argument"] | None = None
    """judge (what `use` alone does): ACS is reported; set: it is set as well, now and early at every boot;
    kernel-argument: as set, and from the next boot on by the kernel itself, before it makes IOMMU groups
    (pci=config_acs, of its own PCI tree for each host), where the kernel has that."""

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        raise_any(_faults(self))
        return self


def _faults(numa: Numa) -> Iterator[Fault]:
    if numa.acs is not None and numa.use is None:
        yield Fault(("acs",), "what ACS has to be depends on who uses the devices", "use: bare-metal, or vms")


def argument_faults(profile: "Profile") -> Iterator[Fault]:
    """An argument that each host computes, given by hand as well; paths are relative to the profile."""
    by_itself = profile.numa is not None and profile.numa.acs == "kernel-argument"
    for index, argument in enumerate(profile.kernel.arguments if by_itself and profile.kernel is not None else ()):
        if argument.startswith("pci=") and "config_acs=" in argument:
            message = "numa: {acs: kernel-argument} has each host compute config_acs"
            yield Fault(("kernel", "arguments", index), message, "leave one of the two out")
