"""What a backend is: one way to read and set a part of a port's QoS, behind one schema.

Backends are modules. Which one a port has is found by looking (:mod:`.probe`), never by a device's name.
"""

from dataclasses import dataclass, field
from typing import Any, Dict, Mapping, Optional, Protocol, Sequence, Tuple, Union

from ..change import Absent, Unknown
from ..host import Host, Reader
from .seen import Control, DscpEntries, Number, Owner, Priorities

Pairs = Tuple[Tuple[int, int], ...]
Turn = Tuple[Any, Any]
"""What a value is and what it becomes."""
Classes = Union[Tuple[str, ...], Unknown]


@dataclass(frozen=True)
class Port:
    """A RoCE port by the names it has now; ``rdma`` is None where it has no RDMA device of its own."""

    pci: str
    netdev: str
    rdma: Optional[str]


@dataclass(frozen=True)
class Dcb:
    """Everything that DCB says of a port, each value known or Unknown with the reason."""

    dcbx: Union[Owner, Unknown]
    trust: Union[str, Unknown]
    dscp: DscpEntries
    pfc: Priorities
    prio_tc: Priorities
    tc_tsa: Classes
    tc_bw: Priorities
    cable_m: Number
    prio_buffer: Priorities
    buffer_bytes: Priorities


@dataclass(frozen=True)
class Ets:
    """Enhanced transmission selection, complete: it is set in one request."""

    prio_tc: Sequence[int]
    tc_tsa: Sequence[str]
    tc_bw: Sequence[int]


class DcbBackend(Protocol):
    """DCB of netdevs. Every setter raises HostError with what failed."""

    def read(self, host: Reader, netdevs: Mapping[str, bool]) -> Dict[str, Dcb]:
        """All there is to read of each netdev; the buffers only where they are asked for."""

    def set_owner(self, host: Host, netdev: str, owner: Owner) -> None:
        """Who runs DCBX."""

    def set_dscp(self, host: Host, netdev: str, current: Pairs, desired: Pairs) -> None:
        """The DSCP map, and with it trust: DSCP where there is an entry, PCP where there is none."""

    def set_pfc(self, host: Host, netdev: str, priorities: Sequence[int]) -> None:
        """PFC on for exactly these priorities. An effective change makes mlx5 toggle the link."""

    def set_ets(self, host: Host, netdev: str, ets: Ets) -> None:
        """All of ETS in one request: the kernel checks the sum of the bandwidths against the algorithms."""

    def set_cable(self, host: Host, netdev: str, metres: int) -> None:
        """The cable length in metres, 1..999."""

    def set_prio_buffer(self, host: Host, netdev: str, prio_buffer: Sequence[int]) -> None:
        """The receive buffer of each priority; switches the driver to manual buffers."""

    def set_buffer_bytes(self, host: Host, netdev: str, sizes: Sequence[int]) -> None:
        """The size of each receive buffer in bytes; switches the driver to manual buffers."""


@dataclass(frozen=True)
class Congestion:
    """ECN, CNP and DCQCN of a port. ABSENT: nobody has made the configfs directory that shows it."""

    ecn_np: Union[Tuple[int, ...], Absent, Unknown]
    ecn_rp: Union[Tuple[int, ...], Absent, Unknown]
    cnp_dscp: Union[int, Absent, Unknown]
    cnp_priority: Union[int, Absent, Unknown]
    dcqcn: Dict[str, Union[int, Absent, Unknown]] = field(default_factory=dict)


class CongestionBackend(Protocol):
    """ECN, CNP and DCQCN of a port. Setters take the values to set by the field names of :class:`Congestion`."""

    CONTROL: Control

    def read(self, host: Reader, port: Port, knobs: Sequence[str]) -> Congestion:
        """All there is to read, and the named DCQCN parameters."""

    def set_ecn(self, host: Host, port: Port, sides: Mapping[str, Turn]) -> None:
        """The priorities for which each side, ``ecn_np`` or ``ecn_rp``, is on."""

    def set_cnp(self, host: Host, port: Port, values: Mapping[str, object]) -> None:
        """How CNPs are marked: ``cnp_dscp``, ``cnp_priority`` or both."""

    def set_dcqcn(self, host: Host, port: Port, values: Mapping[str, object]) -> None:
        """DCQCN parameters by name."""
