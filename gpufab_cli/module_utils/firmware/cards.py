"""Which ports share a card, and what their wishes come to for it. Pure; also used when a fabric is compiled."""

from dataclasses import dataclass
from typing import Callable, Dict, Iterable, List, Optional, Tuple

from ..devices import Devices
from .want import PortWant


@dataclass(frozen=True)
class Card:
    """One card, which has one set of parameters for all its ports.

    ``conflicts`` are parameters that its ports want different values of, with both wishes in words.
    """

    ports: Tuple[PortWant, ...]
    parameters: Dict[str, str]
    conflicts: Dict[str, str]

    @property
    def pci(self) -> str:
        """The function through which the card is addressed: that of its first wanted port."""
        return self.ports[0].pci

    @property
    def rails(self) -> str:
        """The names of its ports, as one word."""
        return "+".join(port.rail for port in self.ports)


def slot(pci: str) -> str:
    """A PCI address without its function."""
    return pci.rpartition(".")[0]


def cards(ports: Iterable[PortWant], serial: Callable[[PortWant], Optional[str]]) -> Tuple[Card, ...]:
    """Ports by card: one serial number is one card wherever its functions are, without one the slot tells."""
    groups: Dict[str, List[PortWant]] = {}
    for port in sorted(ports, key=lambda port: port.pci):
        groups.setdefault(serial(port) or slot(port.pci), []).append(port)
    return tuple(_merged(tuple(group)) for group in groups.values())


def locked_serial(port: PortWant) -> Optional[str]:
    """The serial number that the lock holds."""
    return port.serial


def found_serial(devices: Devices) -> Callable[[PortWant], Optional[str]]:
    """The serial number that the node tells, or else the lock's."""

    def serial(port: PortWant) -> Optional[str]:
        nic = devices.nic(port.pci)
        return nic.serial if nic is not None and isinstance(nic.serial, str) else port.serial

    return serial


def functions(devices: Devices, pci: str) -> Tuple[str, ...]:
    """The physical functions of the card that a function belongs to, itself included."""
    own = devices.nic(pci)
    serial = own.serial if own is not None and isinstance(own.serial, str) else None
    others = (
        nic.pci
        for nic in devices.nics
        if not nic.is_vf and (nic.serial == serial if serial else slot(nic.pci) == slot(pci))
    )
    return tuple(sorted({pci, *others}))


def _merged(ports: Tuple[PortWant, ...]) -> Card:
    parameters: Dict[str, str] = {}
    conflicts: Dict[str, str] = {}
    owner: Dict[str, str] = {}
    for port in ports:
        for name, value in port.parameters.items():
            if parameters.setdefault(name, value) != value:
                conflicts[name] = f"{owner[name]} wants {parameters[name]}, {port.rail} wants {value}"
            owner.setdefault(name, port.rail)
    return Card(ports, parameters, conflicts)
