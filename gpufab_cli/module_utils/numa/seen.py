"""What is found of one node's interrupts, memory and PCI Express."""

from dataclasses import dataclass, field
from typing import Dict, Tuple, Union

from ..change import ABSENT, Absent, Unknown

Text = Union[str, Absent, Unknown]
Number = Union[int, Absent, Unknown]
Cores = Union[Tuple[Tuple[int, ...], ...], Unknown]
Flags = Union[Tuple[str, ...], Absent, Unknown]
Irqs = Tuple[Tuple[str, str], ...]
"""Interrupt numbers in ascending order, each with the CPUs that may take it as the kernel lists them."""


@dataclass(frozen=True)
class PortSeen:
    """One port. ABSENT: it has no such thing."""

    irqs: Union[Irqs, Absent, Unknown] = ABSENT
    managed: Tuple[str, ...] = ()
    """Interrupts whose CPUs the kernel chooses and lets nobody change; they are not among ``irqs``."""
    sysctls: Dict[str, Text] = field(default_factory=dict)
    """Settings of the interfaces that have the port's addresses, as INTERFACE/NAME."""
    max_read_request: Number = ABSENT
    """Bytes."""


@dataclass(frozen=True)
class BridgeSeen:
    """A PCI Express bridge: what kind of port it is, which ACS controls it has, and which of them are on."""

    kind: Union[str, Unknown]
    able: Flags
    acs: Flags


@dataclass(frozen=True)
class IrqbalanceSeen:
    """irqbalance, where it is installed."""

    running: bool = False
    told: bool = False
    """Whether the process that runs was started with gpufab's policy."""
    arguments: Text = ""
    """What the site starts it with."""
    files: Dict[str, Text] = field(default_factory=dict)
    """gpufab's files by path; none where irqbalance is not installed."""


@dataclass(frozen=True)
class NumaSeen:
    """The ports and bridges by PCI address, and the node as a whole."""

    ports: Dict[str, PortSeen] = field(default_factory=dict)
    cores: Dict[str, Cores] = field(default_factory=dict)
    """Of each NUMA node that ports are bound to, by its id: the cores that may take interrupts, as their threads."""
    withheld: str = ""
    """CPUs that are isolated: they take no interrupts of ports."""
    irqbalance: IrqbalanceSeen = IrqbalanceSeen()
    settings: Dict[str, Text] = field(default_factory=dict)
    """Of the node: numa_balancing, zone_reclaim, transparent_hugepages."""
    hugepages: Dict[str, Text] = field(default_factory=dict)
    """How many huge pages there are, as NODE/SIZE, such as node0/2M."""
    every: Dict[str, Text] = field(default_factory=dict)
    """The sysctls of net.ipv4.conf.all, which the kernel may prefer to an interface's own."""
    contradictions: Tuple[Tuple[str, str, str], ...] = ()
    """Lines of sysctl.d: file, setting as below /proc/sys, value."""
    bridges: Dict[str, BridgeSeen] = field(default_factory=dict)
    domains: Dict[str, Text] = field(default_factory=dict)
    """Of each GPU and port its IOMMU domain: identity, DMA, DMA-FQ, …; ABSENT without IOMMU."""
    guests: Tuple[str, ...] = ()
    """PCI functions that are bound to vfio-pci."""
