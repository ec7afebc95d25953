"""The settings of a RoCE port: what each is wanted to be, when it fits, and what changing it does."""

from functools import lru_cache
from typing import Any, Callable, Dict, FrozenSet, Iterator, Tuple

from ..change import Absent, Change, Impact, Unknown
from .seen import PortSeen
from .want import QosWant

NOT_ASKED = Unknown("not looked at: the snapshot was taken for another wish")
TRAFFIC = frozenset({Impact.TRAFFIC})

# What each setting does to those who use the port. PFC: mlx5 toggles the link at an effective change
# (mlx5e_dcbnl_ieee_setpfc). Trust, map, buffers and ETS reconfigure queues under live traffic. RDMA-CM's defaults act
# on connections made later only.
IMPACT: Dict[str, FrozenSet[Impact]] = {
    "pfc": TRAFFIC | {Impact.LINK_FLAP},
    "rdma_cm_tos": frozenset(),
    "rdma_cm_mode": frozenset(),
}

# In the order in which they are made. What decides first (DCBX, pause, trust) comes before what it decides on, and
# buffers before PFC, which needs their headroom.
CODES = {
    "dcbx": "roce.dcbx",
    "pause": "roce.pause",
    "trust": "roce.trust",
    "dscp_priority": "roce.dscp-map",
    "cable_m": "roce.cable",
    "prio_buffer": "roce.buffers",
    "buffer_bytes": "roce.buffers",
    "pfc": "roce.pfc",
    "prio_tc": "roce.ets",
    "tc_tsa": "roce.ets",
    "tc_bw": "roce.ets",
    "ecn_np": "roce.ecn",
    "ecn_rp": "roce.ecn",
    "cnp_dscp": "roce.cnp",
    "cnp_priority": "roce.cnp",
    "dcqcn": "roce.dcqcn",
    "traffic_class": "roce.traffic-class",
    "rdma_cm_tos": "roce.rdma-cm",
    "rdma_cm_mode": "roce.rdma-cm",
}
OF_RDMA_DEVICE = ("traffic_class", "rdma_cm_tos", "rdma_cm_mode")


def changes(pci: str, seen: PortSeen, qos: QosWant, *, take_dcbx: bool) -> Iterator[Change]:
    """The changes of a port, in the order in which they are made."""
    for name, code in CODES.items():
        if _is_elsewhere(name, seen):
            continue
        if name == "dcqcn":
            yield from _dcqcn(pci, seen, qos)
            continue
        wanted = ("host" if take_dcbx else None) if name == "dcbx" else _wanted(name, qos)
        current = getattr(seen, name)
        if wanted is not None and not _fits(name, current, wanted):
            found = NOT_ASKED if current is None else current
            yield Change((pci, name), found, _target(name, seen, wanted), code)


def _is_elsewhere(name: str, seen: PortSeen) -> bool:
    """What another port of the bond has, and ECN where only the firmware sets it, unless it cannot even be read."""
    if name in OF_RDMA_DEVICE:
        return bool(seen.lag_owner)
    return name in ("ecn_np", "ecn_rp") and seen.control == "inbox" and not isinstance(getattr(seen, name), Unknown)


def _dcqcn(pci: str, seen: PortSeen, qos: QosWant) -> Iterator[Change]:
    wanted = qos.dcqcn.wanted() if qos.dcqcn is not None else {}
    for knob, value in wanted.items():
        current = seen.dcqcn.get(knob, NOT_ASKED)
        if current != value:
            yield Change((pci, knob), current, value, CODES["dcqcn"])


def impact(name: str) -> FrozenSet[Impact]:
    """What changing a setting or DCQCN parameter may do."""
    return IMPACT.get(name, TRAFFIC)


def _wanted(name: str, qos: QosWant) -> Any:
    if name == "pause":
        return (False, False) if qos.pfc else None
    if name == "trust":
        return "dscp"
    if name == "dscp_priority":
        return _pairs(qos.dscp_priority)
    if name in ("ecn_np", "ecn_rp"):
        return qos.ecn
    return getattr(qos, name)


@lru_cache(maxsize=64)
def _pairs(priorities: Tuple[int, ...]) -> Tuple[Tuple[int, int], ...]:
    """Each DSCP and its priority; one for all ports of all hosts that an audit keeps in mind."""
    return tuple(enumerate(priorities))


def _fits(name: str, current: Any, wanted: Any) -> bool:
    if isinstance(current, (Unknown, Absent)):
        return False
    rule = _FITS.get(name)
    return rule(current, wanted) if rule is not None else bool(current == wanted)


def _same_dscp(current: int, wanted: int) -> bool:
    """ToS bytes that differ only in their ECN bits select the same class: DSCP is the byte >> 2 (RFC 3168)."""
    return current >> 2 == wanted >> 2


def _np_fits(current: Tuple[int, ...], wanted: Tuple[int, ...]) -> bool:
    """The notification point is port-wide: any priority enabled makes the port send CNPs."""
    return bool(current) == bool(wanted)


def rp_fits(current: Tuple[int, ...], wanted: Tuple[int, ...]) -> bool:
    """The reaction point counts per priority: on for each wanted one; off altogether where none is wanted."""
    return set(wanted) <= set(current) if wanted else not current


_FITS: Dict[str, Callable[[Any, Any], bool]] = {
    "ecn_np": _np_fits,
    "ecn_rp": rp_fits,
    "traffic_class": _same_dscp,
    "rdma_cm_tos": _same_dscp,
}


def _target(name: str, seen: PortSeen, wanted: Any) -> Any:
    """What the value becomes: more RP priorities than wanted do no harm where each has its own switch."""
    current = getattr(seen, name)
    if name == "ecn_rp" and wanted and isinstance(current, tuple) and seen.control == "vendor":
        return tuple(sorted({*current, *wanted}))
    return wanted
