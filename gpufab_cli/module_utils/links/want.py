"""What the spec wants of ports that carry no RoCE: that they are there, the pinned ones, and up at their speed."""

from dataclasses import dataclass
from typing import Annotated, Literal, Optional, Tuple

from ..schema import Doc, Guid, MacAddress, PciAddress, Range


@dataclass(frozen=True)
class LinkWant:
    """One port, pinned by the lock."""

    rail: Annotated[str, Doc("Name of the port in the fabric, network/rail, such as compute/3.")]
    pci: Annotated[PciAddress, Doc("PCI address of the port's function.")]
    transport: Annotated[Literal["infiniband", "ethernet"], Doc("What the port's network carries.")]
    mac: Annotated[Optional[MacAddress], Doc("Permanent MAC address of an Ethernet port.")] = None
    guid: Annotated[Optional[Guid], Doc("Node GUID of an InfiniBand port.")] = None
    serial: Annotated[Optional[str], Doc("Serial number of the card.")] = None
    psid: Annotated[Optional[str], Doc("Board id (PSID) of the card's firmware.")] = None
    speed_gbps: Annotated[
        Optional[Annotated[int, Range(1, 3200)]], Doc("Speed of the link in Gb/s; not checked if left out.")
    ] = None


@dataclass(frozen=True)
class LinksWant:
    """Everything the links feature is told about one node."""

    ports: Annotated[Tuple[LinkWant, ...], Doc("The ports of the node that carry no RoCE.")]
