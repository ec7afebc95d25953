"""What the spec wants of the firmware settings of the NICs of one node."""

from dataclasses import dataclass, field
from typing import Annotated, Dict, Optional, Tuple

from ..schema import Doc, Guid, MacAddress, Pattern, PciAddress

ParameterName = Annotated[str, Pattern(r"[A-Z][A-Z0-9_]{0,63}(?:\[\d{1,3}\])?", "a firmware parameter's name")]
ParameterValue = Annotated[str, Pattern(r"[A-Za-z0-9_.-]{1,64}", "a firmware parameter's value")]


@dataclass(frozen=True)
class PortWant:
    """One port, pinned by the lock, and what it wants of its card. The ports of a card share its settings."""

    rail: Annotated[str, Doc("Name of the port in the fabric, network/rail, such as compute/3.")]
    pci: Annotated[PciAddress, Doc("PCI address of the port's function.")]
    parameters: Annotated[
        Dict[ParameterName, ParameterValue],
        Doc("Parameters by the name mlxconfig has for them, port suffix included; values as names or numbers."),
    ] = field(default_factory=dict)
    mac: Annotated[Optional[MacAddress], Doc("Permanent MAC address the lock holds.")] = None
    guid: Annotated[Optional[Guid], Doc("Node GUID of the RDMA device the lock holds.")] = None
    serial: Annotated[Optional[str], Doc("Serial number of the card the lock holds.")] = None
    psid: Annotated[Optional[str], Doc("Board id (PSID) of the card's firmware the lock holds.")] = None


@dataclass(frozen=True)
class FirmwareWant:
    """Everything the firmware feature is told about one node."""

    ports: Annotated[Tuple[PortWant, ...], Doc("The ports whose cards are set.")]
    versions: Annotated[
        Optional[Dict[str, str]], Doc("Firmware version that each PSID is to have; only checked, never burned.")
    ] = None
