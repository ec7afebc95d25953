"""What is found of the SR-IOV virtual functions of one node."""

from dataclasses import dataclass, field
from typing import Dict, Tuple, Union

from ..change import Absent, Unknown

Number = Union[int, Absent, Unknown]
Text = Union[str, Absent, Unknown]
Flag = Union[bool, Absent, Unknown]


@dataclass(frozen=True)
class VfSeen:
    """One VF: what the physical function keeps of it, then what it shows itself and who uses it."""

    mac: Text
    node_guid: Text
    port_guid: Text
    vlan: Number
    vlan_qos: Number
    max_tx_mbps: Number
    min_tx_mbps: Number
    spoofchk: Flag
    trust: Flag
    link_state: Text
    pci: str = ""
    driver: str = ""
    """Its driver; "" when none is bound."""
    rdma_guid: Text = Absent.ABSENT
    """Node GUID of its RDMA device, eight bytes with colons between."""
    rdma_state: str = ""
    users: Union[Tuple[str, ...], Unknown] = ()


ATTRIBUTES = (
    "mac",
    "node_guid",
    "port_guid",
    "vlan",
    "vlan_qos",
    "max_tx_mbps",
    "min_tx_mbps",
    "spoofchk",
    "trust",
    "link_state",
)
"""The fields of a VF that are set through its physical function, in the order in which they are set."""


@dataclass(frozen=True)
class PortSeen:
    """One physical function. ABSENT numbers: it has no SR-IOV capability."""

    numvfs: Number
    totalvfs: Number
    autoprobe: Flag
    eswitch: Text
    """legacy or switchdev; ABSENT for a driver without an e-switch."""
    admin_up: Flag
    """Whether somebody has set its one netdev up."""
    vfs: Tuple[VfSeen, ...] = ()


@dataclass(frozen=True)
class SriovSeen:
    """The wanted ports that are there, by PCI address, and the digests of the files that keep VFs unmanaged."""

    ports: Dict[str, PortSeen] = field(default_factory=dict)
    files: Dict[str, Text] = field(default_factory=dict)
