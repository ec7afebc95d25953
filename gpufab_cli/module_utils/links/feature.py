"""The links feature: InfiniBand and plain Ethernet ports are looked at, and nothing is ever set there."""

import re
from dataclasses import replace
from typing import Iterator, Optional, Tuple

from .. import identity
from ..change import Finding, Plan, Step
from ..devices import Devices, Nic
from ..host import Host, HostError, Reader
from ..snapshot import Snapshot
from .seen import LinksSeen
from .want import LinksWant, LinkWant

FEATURE = "links"


class Links:
    """Findings only: QoS of InfiniBand is the subnet manager's, and other Ethernet ports are the site's."""

    name = FEATURE
    want_type = LinksWant
    seen_type = LinksSeen
    restored = False

    def gather(self, host: Reader, devices: Devices, want: LinksWant) -> LinksSeen:  # noqa: ARG002
        """Nothing beyond the devices."""
        return LinksSeen()

    def plan(self, snapshot: Snapshot, want: LinksWant) -> Plan:
        """What is wrong with each port."""
        return Plan((), findings=tuple(f for port in want.ports for f in _findings(snapshot.devices, port)))

    def only(self, want: LinksWant, device: str) -> LinksWant:
        """The wish for one port."""
        return replace(want, ports=tuple(port for port in want.ports if port.pci == device))

    def apply(self, step: Step, host: Host) -> None:  # noqa: ARG002
        """Refuse: the plan has no steps."""
        raise HostError(f"{step.name}: links are only looked at")


def _findings(devices: Devices, port: LinkWant) -> Iterator[Finding]:
    nic = devices.nic(port.pci)
    wrong = identity.problem(devices, port, nic, port.guid)
    if wrong is not None or nic is None:
        yield from [wrong] if wrong is not None else []
        return
    path = (port.pci, port.rail)
    if nic.nvswitch:
        yield Finding("device.management", path, "it manages the NVSwitches of the GPU baseboard")
        return
    layer = nic.rdma[0].link_layer if nic.rdma else "no RDMA device"
    if port.transport == "infiniband" and layer != "InfiniBand":
        yield Finding("links.layer", path, f"{layer}, InfiniBand is declared")
    elif port.transport == "ethernet" and layer == "InfiniBand":
        yield Finding("links.layer", path, "InfiniBand, Ethernet is declared")
    else:
        yield from _link(path, port, nic)


def _link(path: Tuple[str, ...], port: LinkWant, nic: Nic) -> Iterator[Finding]:
    infiniband = port.transport == "infiniband"
    state, up = (nic.rdma[0].state, "ACTIVE") if infiniband else (nic.netdev.operstate if nic.netdev else "", "up")
    if state != up:  # no names in the evidence: what is the same on many ports is said once
        yield Finding("links.down", path, f"the port is {state or 'in no known state'}", unknown=not state)
        return
    speed = _rate_gbps(nic.rdma[0].rate) if infiniband else _speed_gbps(nic)
    if port.speed_gbps is not None and speed != port.speed_gbps:
        shown = "at an unknown speed" if speed is None else f"at {speed:g} Gb/s"
        words = f"the link is {shown}, {port.speed_gbps} Gb/s is declared"
        yield Finding("links.speed", path, words, unknown=speed is None)


def _rate_gbps(rate: str) -> Optional[float]:
    """Gb/s of an InfiniBand port's rate, ``400 Gb/sec (4X NDR)`` or ``2.5 Gb/sec (1X SDR)``."""
    match = re.match(r"[0-9]+(?:\.[0-9]+)?(?= Gb/sec)", rate)
    return float(match[0]) if match else None


def _speed_gbps(nic: Nic) -> Optional[float]:
    speed = nic.netdev.speed_mbps if nic.netdev is not None else None
    return speed / 1000 if isinstance(speed, int) else None
