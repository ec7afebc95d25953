"""What a physical function remembers of its virtual functions, and how they are numbered and named."""

import re
from dataclasses import dataclass, field
from typing import Any

NO_MAC = "00:00:00:00:00:00"
NO_GUID = "00:00:00:00:00:00:00:00"
STRIDE = 1


@dataclass
class Vf:
    """One VF: what `ip link set … vf` sets, then what its driver took over when it was bound."""

    mac: str = NO_MAC
    node_guid: str = NO_GUID
    port_guid: str = NO_GUID
    vlan: int = 0
    vlan_qos: int = 0
    max_tx_mbps: int = 0
    min_tx_mbps: int = 0
    spoofchk: bool = False
    trust: bool = False
    query_rss: bool = False
    state: str = "auto"
    driver: str = ""
    override: str = ""
    rdma: int = -1
    """Number of its RDMA device; -1 while it has none."""
    own_guid: str = NO_GUID


@dataclass
class Sriov:
    """All of a port's VFs; nothing of it outlives the driver."""

    autoprobe: bool = True
    eswitch: str = "legacy"
    vfs: list[Vf] = field(default_factory=list)

    @classmethod
    def load(cls, raw: dict[str, Any]) -> "Sriov":
        """Reads what `State.save` wrote."""
        return cls(raw["autoprobe"], raw["eswitch"], [Vf(**vf) for vf in raw["vfs"]])


def vf_pci(pf: str, index: int, total: int) -> str:
    """The PCI address of a VF: routing id of the PF, an offset that leaves room for the card's ports, and the index."""
    domain, bus, function = pf.split(":")
    device, _, port = function.partition(".")
    offset = 2 + int(port) * (total - 1)
    routing = (int(bus, 16) << 8) + (int(device, 16) << 3) + int(port) + offset + STRIDE * index
    return f"{domain}:{routing >> 8:02x}:{routing >> 3 & 0x1F:02x}.{routing & 7}"


def vf_name(pf: str, index: int) -> str:
    """The netdev's name as systemd gives it (NAMING_SR_IOV_V): the PF's without its port, and a v suffix."""
    return re.sub(r"np\d+$", "", pf) + f"v{index}"


def mac_guid(mac: str) -> str:
    """The node GUID that mlx5 makes of a VF's MAC (node_guid_gen_from_mac); none of none."""
    octets = mac.split(":")
    return NO_GUID if mac == NO_MAC else ":".join([*octets[:3], "ff", "fe", *octets[3:]])
