"""What the spec wants of the RoCE ports of one node: one lossless class agreed by trust, map, PFC, ETS, ECN and ToS."""

from dataclasses import dataclass
from typing import Annotated, Dict, Literal, Optional, Tuple

from ..schema import Doc, Dscp, Length, MacAddress, NetdevName, Pattern, PciAddress, Priority, Range, TrafficClass
from .knobs import DcqcnWant

TSA = Literal["strict", "ets", "vendor"]
Takeover = Literal["dcbx"]
BondMode = Literal["802.3ad", "active-backup", "balance-xor"]
"""What mlx5 makes a LAG of (drivers/net/ethernet/mellanox/mlx5/core/lag/lag.c), by the kernel's names."""
PRIORITIES = 8
DSCPS = 64


@dataclass(frozen=True)
class QosWant:
    """One QoS profile, complete for a port. A field that is None is not managed."""

    dscp_priority: Annotated[
        Tuple[Priority, ...], Length(DSCPS), Doc("Priority of each DSCP 0..63; the port trusts DSCP.")
    ]
    pfc: Annotated[Tuple[Priority, ...], Doc("The lossless priorities: PFC on for exactly these, global pause off.")]
    prio_tc: Annotated[
        Optional[Annotated[Tuple[Priority, ...], Length(PRIORITIES)]], Doc("Traffic class of each priority 0..7.")
    ] = None
    tc_tsa: Annotated[
        Optional[Annotated[Tuple[TSA, ...], Length(PRIORITIES)]],
        Doc("Transmission selection algorithm of each traffic class 0..7."),
    ] = None
    tc_bw: Annotated[
        Optional[Annotated[Tuple[Annotated[int, Range(0, 100)], ...], Length(PRIORITIES)]],
        Doc("Guaranteed bandwidth of each traffic class 0..7, in percent; the ets classes sum to 100."),
    ] = None
    ecn: Annotated[
        Optional[Tuple[Priority, ...]],
        Doc("Priorities whose flows react to CNPs (RP); the port sends CNPs (NP) unless this is empty."),
    ] = None
    cnp_dscp: Annotated[Optional[Dscp], Doc("DSCP of the congestion notification packets.")] = None
    cnp_priority: Annotated[Optional[Priority], Doc("802.1p priority of the congestion notification packets.")] = None
    traffic_class: Annotated[
        Optional[TrafficClass], Doc("Traffic class byte forced on every queue pair: DSCP << 2 | ECN bits.")
    ] = None
    rdma_cm_tos: Annotated[
        Optional[TrafficClass], Doc("Default ToS byte of RDMA-CM connections: DSCP << 2 | ECN bits.")
    ] = None
    rdma_cm_mode: Annotated[
        Optional[Literal["IB/RoCE v1", "RoCE v2"]], Doc("Default RoCE mode of RDMA-CM connections.")
    ] = None
    cable_m: Annotated[
        Optional[Annotated[int, Range(1, 999)]], Doc("Cable length in metres, from which mlx5 derives PFC headroom.")
    ] = None
    prio_buffer: Annotated[
        Optional[Annotated[Tuple[Priority, ...], Length(PRIORITIES)]], Doc("Receive buffer of each priority 0..7.")
    ] = None
    buffer_bytes: Annotated[
        Optional[Annotated[Tuple[Annotated[int, Range(0, 2**31 - 1)], ...], Length(PRIORITIES)]],
        Doc("Size of each receive buffer 0..7, in bytes; lossless ones must hold the PFC headroom."),
    ] = None
    dcqcn: Annotated[
        Optional[DcqcnWant], Doc("DCQCN parameters by their usual names, such as rpg_ai_rate; none is managed unset.")
    ] = None


@dataclass(frozen=True)
class BondWant:
    """The bond that the site has made of two ports, so that they are one RoCE LAG. gpufab only checks it."""

    name: Annotated[NetdevName, Doc("Name of the bond's interface.")]
    mode: Annotated[Optional[BondMode], Doc("Bonding mode, one of those that mlx5 offloads to a LAG.")] = None


@dataclass(frozen=True)
class PortWant:
    """One port, pinned by the lock: what must be found at a PCI address, and which QoS profile it follows."""

    rail: Annotated[str, Doc("Name of the port in the fabric, network/rail, such as compute/3.")]
    pci: Annotated[PciAddress, Doc("PCI address of the port's function.")]
    qos: Annotated[str, Doc("Name of the QoS profile.")]
    mac: Annotated[Optional[MacAddress], Doc("Permanent MAC address the lock holds.")] = None
    serial: Annotated[Optional[str], Doc("Serial number of the card the lock holds.")] = None
    psid: Annotated[Optional[str], Doc("Board id (PSID) of the card's firmware the lock holds.")] = None
    address: Annotated[
        Optional[Annotated[str, Pattern(r"[0-9a-f.:]{2,45}/\d{1,3}", "an address such as 10.10.3.7/24")]],
        Doc("IP address with prefix length that the site sets; gpufab only checks it."),
    ] = None
    mtu: Annotated[
        Optional[Annotated[int, Range(576, 9978)]], Doc("MTU in bytes that the site sets; gpufab only checks it.")
    ] = None
    bond: Annotated[
        Optional[BondWant], Doc("The bond that the site has put the port into; it holds the address then.")
    ] = None


@dataclass(frozen=True)
class RoceWant:
    """Everything the roce feature is told about one node."""

    qos: Annotated[Dict[str, QosWant], Doc("QoS profiles by name.")]
    ports: Annotated[Tuple[PortWant, ...], Doc("The RoCE ports of the node.")]
    takeover: Annotated[
        Optional[Tuple[Takeover, ...]],
        Doc("Foreign owners that may be relieved: dcbx takes PFC and ETS from the NIC's firmware to the host."),
    ] = None
