"""What is found on the RoCE ports of one node."""

from dataclasses import dataclass, field
from typing import Dict, Optional, Tuple, Union

from ..change import Absent, Unknown

Priorities = Union[Tuple[int, ...], Unknown]
Number = Union[int, Unknown]
DscpEntries = Union[Tuple[Tuple[int, int], ...], Unknown]


@dataclass(frozen=True)
class PortSeen:
    """The QoS state of one port. Each field is one value, or Unknown with the reason.

    ``dscp_priority`` holds (DSCP, priority) pairs in ascending order: some drivers keep two priorities for one DSCP.
    ``trust`` follows from it on mlx5: the first DSCP entry switches the port to trust DSCP, the last one removed
    switches it back (kernel: mellanox/mlx5/core/en_dcbnl.c).
    """

    pause: Union[Tuple[bool, bool], Unknown]
    """802.3x global pause: (rx, tx)."""
    trust: Union[str, Unknown]
    dscp_priority: DscpEntries
    pfc: Priorities
    prio_tc: Priorities
    tc_tsa: Union[Tuple[str, ...], Unknown]
    tc_bw: Priorities
    ecn_np: Priorities
    ecn_rp: Priorities
    cnp_dscp: Number
    cnp_priority: Number
    traffic_class: Union[int, Absent, Unknown]
    rdma_cm_tos: Union[int, Absent, Unknown]
    rdma_cm_mode: Union[str, Absent, Unknown]
    traffic_class_rules: Tuple[str, ...] = ()
    """Per-address rules beside the global traffic class, as sysfs prints them; gpufab sets none."""


@dataclass(frozen=True)
class RoceSeen:
    """The wanted ports that have exactly one netdev, by PCI address, and who else writes their settings."""

    ports: Dict[str, PortSeen] = field(default_factory=dict)
    lldpad: Optional[str] = None
    """The process id of a running lldpad."""
