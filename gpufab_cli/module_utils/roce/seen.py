"""What is found on the RoCE ports of one node."""

from dataclasses import dataclass, field
from typing import Annotated, Dict, Literal, Optional, Tuple, Union

from ..change import Absent, Unknown
from ..schema import Length
from .want import PRIORITIES

Priorities = Union[Tuple[int, ...], Unknown]
Eight = Annotated[Tuple[int, ...], Length(PRIORITIES)]
"""One number for each priority, traffic class or buffer."""
Number = Union[int, Unknown]
DscpEntries = Union[Tuple[Tuple[int, int], ...], Unknown]
Owner = Literal["host", "firmware"]
Control = Literal["vendor", "inbox", "bnxt", "none"]


@dataclass(frozen=True)
class Gid:
    """One row of a port's GID table. ``kind`` is as sysfs prints it: "RoCE v2" or "IB/RoCE v1"."""

    index: int
    address: str
    kind: str


@dataclass(frozen=True)
class BondSeen:
    """What a port's bond is, and what the bond thinks of the port."""

    name: str
    mode: Union[str, Unknown]
    """As the kernel names it, such as 802.3ad."""
    link: Union[str, Unknown]
    """The port's link by the bond's own watch: up, going down, down or going back."""
    joined: Union[bool, Absent, Unknown]
    """Whether the port is in the aggregator that carries the bond's traffic; ABSENT in modes without LACP."""


@dataclass(frozen=True)
class PortSeen:
    """The QoS state of one port. Each field is one value, or Unknown with the reason; None: nobody asked.

    ``dscp_priority`` holds (DSCP, priority) pairs in ascending order: some drivers keep two priorities for one DSCP.
    ``trust`` follows from it on mlx5: the first DSCP entry switches the port to trust DSCP, the last one removed
    switches it back (kernel: mellanox/mlx5/core/en_dcbnl.c).
    """

    pause: Union[Tuple[bool, bool], Unknown]
    """802.3x global pause: (rx, tx)."""
    trust: Union[str, Unknown]
    dscp_priority: DscpEntries
    pfc: Priorities
    prio_tc: Union[Eight, Unknown]
    tc_tsa: Union[Annotated[Tuple[str, ...], Length(PRIORITIES)], Unknown]
    tc_bw: Union[Eight, Unknown]
    ecn_np: Union[Tuple[int, ...], Absent, Unknown]
    ecn_rp: Union[Tuple[int, ...], Absent, Unknown]
    cnp_dscp: Union[int, Absent, Unknown]
    cnp_priority: Union[int, Absent, Unknown]
    traffic_class: Union[int, Absent, Unknown]
    rdma_cm_tos: Union[int, Absent, Unknown]
    rdma_cm_mode: Union[str, Absent, Unknown]
    traffic_class_rules: Tuple[str, ...] = ()
    """Per-address rules beside the global traffic class, as sysfs prints them; gpufab sets none."""
    dcbx: Union[Owner, Unknown] = "host"
    """Who decides PFC and ETS: the host, or DCBX in the NIC's firmware. Unknown where the driver does not say."""
    cable_m: Union[int, Unknown, None] = None
    prio_buffer: Union[Eight, Unknown, None] = None
    buffer_bytes: Union[Eight, Unknown, None] = None
    dcqcn: Dict[str, Union[int, Absent, Unknown]] = field(default_factory=dict)
    """The DCQCN parameters that were asked for."""
    control: Control = "vendor"
    """Which driver interface shows ECN, CNP and DCQCN. On ``inbox`` ECN is the firmware's mask, set by no driver."""
    lag_owner: str = ""
    """PCI address of the bonded port whose function holds the RDMA device of both; "" for a port of its own."""
    gids: Union[Tuple[Gid, ...], Unknown, None] = None
    bond: Union[BondSeen, Absent, None] = None


@dataclass(frozen=True)
class RoceSeen:
    """The wanted ports that have exactly one netdev, by PCI address, and who else writes their settings."""

    ports: Dict[str, PortSeen] = field(default_factory=dict)
    lldpad: Optional[str] = None
    """The process id of a running lldpad."""
