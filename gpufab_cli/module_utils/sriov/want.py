"""What the spec wants of the SR-IOV virtual functions of one node."""

from dataclasses import dataclass
from typing import Annotated, Literal, Optional, Tuple

from ..schema import Doc, Guid, MacAddress, PciAddress, Priority, Range

LinkState = Literal["auto", "enable", "disable"]
Mbps = Annotated[int, Range(0, 4_294_967_295)]


@dataclass(frozen=True)
class VfWant:
    """One VF, as its physical function keeps it. A field that is None is not managed."""

    mac: Annotated[Optional[MacAddress], Doc("MAC address of an Ethernet VF.")] = None
    node_guid: Annotated[Optional[Guid], Doc("Node GUID of an InfiniBand VF.")] = None
    port_guid: Annotated[Optional[Guid], Doc("Port GUID of an InfiniBand VF.")] = None
    vlan: Annotated[Optional[Annotated[int, Range(0, 4094)]], Doc("VLAN that the VF is in; 0 for none.")] = None
    vlan_qos: Annotated[Optional[Priority], Doc("802.1p priority of the VLAN tag.")] = None
    max_tx_mbps: Annotated[Optional[Mbps], Doc("Highest transmit rate in Mb/s; 0 for no limit.")] = None
    min_tx_mbps: Annotated[Optional[Mbps], Doc("Guaranteed transmit rate in Mb/s; 0 for none.")] = None
    spoofchk: Annotated[Optional[bool], Doc("Whether frames with a foreign source MAC are dropped.")] = None
    trust: Annotated[Optional[bool], Doc("Whether the VF may change its MAC and turn on promiscuous mode.")] = None
    link_state: Annotated[
        Optional[LinkState], Doc("auto follows the port; enable and disable force the VF's link.")
    ] = None


@dataclass(frozen=True)
class PortWant:
    """One physical port, pinned by the lock, and its VFs."""

    rail: Annotated[str, Doc("Name of the port in the fabric, network/rail, such as compute/3.")]
    pci: Annotated[PciAddress, Doc("PCI address of the physical function.")]
    vfs: Annotated[Tuple[VfWant, ...], Doc("The VFs by index: as many are made; empty for none.")]
    autoprobe: Annotated[
        Optional[bool], Doc("Whether the kernel binds drivers to new VFs (sriov_drivers_autoprobe).")
    ] = None
    mac: Annotated[Optional[MacAddress], Doc("Permanent MAC address the lock holds.")] = None
    guid: Annotated[Optional[Guid], Doc("Node GUID of the RDMA device the lock holds.")] = None
    serial: Annotated[Optional[str], Doc("Serial number of the card the lock holds.")] = None
    psid: Annotated[Optional[str], Doc("Board id (PSID) of the card's firmware the lock holds.")] = None


@dataclass(frozen=True)
class SriovWant:
    """Everything the sriov feature is told about one node."""

    ports: Annotated[Tuple[PortWant, ...], Doc("The physical ports that have VFs, or are to have none.")]
    unmanaged: Annotated[
        Optional[bool],
        Doc("Keep the netdevs of all VFs of the node out of NetworkManager and systemd-networkd; false: do not."),
    ] = None
