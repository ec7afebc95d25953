"""What a machine remembers of interrupts, memory and PCI Express until it is switched off."""

from dataclasses import dataclass, field


@dataclass
class NumaState:
    """What was written since boot; the rest is as firmware and kernel have it."""

    irqs: dict[str, str] = field(default_factory=dict)
    """CPUs of an interrupt, by its number."""
    settings: dict[str, str] = field(default_factory=dict)
    """The kernel's settings by name."""
    hugepages: dict[str, int] = field(default_factory=dict)
    """Huge pages by NODE/KIB."""
    acs: dict[str, int] = field(default_factory=dict)
    """The ACS control register of a bridge."""
    read_request: dict[str, int] = field(default_factory=dict)
    """The read request's code of a function: 128 bytes and as many doublings."""
    domain: str = ""
    """How the IOMMU treats GPUs and ports: identity or DMA-FQ; "" without IOMMU."""
