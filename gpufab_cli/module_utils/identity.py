"""Whether the device at a PCI address is the one that the lock holds; and what a port carries."""

import re
from typing import FrozenSet, Optional, Protocol, Union

from .change import Finding, Impact, Unknown
from .devices import Devices, Netdev, Nic


class Pinned(Protocol):
    """A port as the lock pins it; what the lock does not hold is None."""

    @property
    def rail(self) -> str:
        """Name of the port in the fabric."""

    @property
    def pci(self) -> str:
        """PCI address."""

    @property
    def mac(self) -> Optional[str]:
        """MAC address of an Ethernet port."""

    @property
    def serial(self) -> Optional[str]:
        """Serial number of the card."""

    @property
    def psid(self) -> Optional[str]:
        """Board id of the card's firmware."""


def problem(devices: Devices, port: Pinned, nic: Optional[Nic], guid: Optional[str] = None) -> Optional[Finding]:
    """Why the device at the port's address is not the one the lock holds, if it is not. ``guid``: its node GUID."""
    path = (port.pci, port.rail)
    if nic is None or not (nic.netdevs or nic.rdma):
        moved = devices.nic_by_mac(port.mac) if port.mac else _by_guid(devices, guid)
        if moved is not None:
            return Finding("device.moved", path, f"{port.mac or guid} is now at {moved.pci}")
        what = "nothing there" if nic is None else "no netdev there: the driver is not loaded or has failed"
        return Finding("device.missing", path, what)
    if nic.is_vf:
        return Finding("device.ambiguous", path, "a VF")
    return _replaced(port, nic, guid)


def _replaced(port: Pinned, nic: Nic, guid: Optional[str]) -> Optional[Finding]:
    macs = [netdev.mac for netdev in nic.netdevs]
    guids = [plain_guid(device.node_guid) for device in nic.rdma]
    for what, found, locked in (("MAC", macs, port.mac), ("GUID", guids, guid)):
        if locked and found and locked not in found:
            return Finding("device.replaced", (port.pci, port.rail), f"{what} {found[0]}, the lock holds {locked}")
    if port.serial and isinstance(nic.serial, str) and nic.serial != port.serial:
        return Finding("device.replaced", (port.pci, port.rail), f"serial {nic.serial}, the lock holds {port.serial}")
    if port.psid and isinstance(nic.psid, str) and nic.psid != port.psid:
        return Finding("device.psid", (port.pci, port.rail), f"PSID {nic.psid}, the lock holds {port.psid}")
    return None


def _by_guid(devices: Devices, guid: Optional[str]) -> Optional[Nic]:
    if guid is None:
        return None
    return next((nic for nic in devices.nics if any(plain_guid(dev.node_guid) == guid for dev in nic.rdma)), None)


def plain_guid(text: str) -> str:
    """A GUID in any notation (``0200:0003:…``, ``0x0200…``, ``02:00:…``) as eight bytes with colons between."""
    digits = re.sub(r"^0x|[^0-9a-f]", "", text.lower())
    return ":".join(digits[i : i + 2] for i in range(0, 16, 2)) if len(digits) == 16 else ""  # noqa: PLR2004


def management(netdev: Netdev) -> FrozenSet[Impact]:
    """The consent it takes to touch a port that the node itself depends on."""
    return frozenset({Impact.MANAGEMENT_PORT}) if netdev.carries and isinstance(netdev.carries, tuple) else frozenset()


def undecidable(netdev: Netdev) -> str:
    """Why nobody can say whether the node depends on the port; "" when that is known."""
    carries: Union[object, Unknown] = netdev.carries
    return f"cannot tell what {netdev.name} carries: {carries.reason}" if isinstance(carries, Unknown) else ""
