"""What gpufab will not change on a RoCE port and the operator must know: devices, links, addresses, firmware."""

import ipaddress
from typing import Iterator, List, Optional, Tuple, Union

from .. import identity
from ..change import Finding, Path, Unknown
from ..devices import Devices, Netdev, Nic, Upper
from . import bonds, cc_params, gids, headroom, settings
from .gather import lag_owner
from .seen import PortSeen
from .want import PortWant, QosWant, RoceWant

DEFAULT_CABLE_M = 7
"""What mlx5 assumes until told (MLX5E_DEFAULT_CABLE_LEN)."""


def unfit(devices: Devices, port: PortWant, nic: Optional[Nic]) -> Optional[Finding]:
    """Why the device at the address is not a RoCE port that the lock holds, if it is not."""
    path = (port.pci, port.rail)
    if nic is not None and nic.nvswitch:
        return Finding("device.management", path, "it manages the NVSwitches of the GPU baseboard")
    if nic is not None and any(device.link_layer == "InfiniBand" for device in nic.rdma):
        return Finding("roce.link-layer", path, f"{nic.rdma[0].name} is InfiniBand: nothing is set there")
    other = identity.problem(devices, port, nic)
    if other is not None or nic is None:
        return other
    if not nic.netdevs:
        return Finding("device.missing", path, "no netdev there: the driver is not loaded or has failed")
    return Finding("device.ambiguous", path, f"{len(nic.netdevs)} netdevs") if nic.netdev is None else None


def findings(devices: Devices, want: RoceWant, port: PortWant, seen: PortSeen) -> Iterator[Finding]:
    """Everything to be said of a port that is the right one."""
    nic = devices.nic(port.pci)
    netdev = nic.netdev if nic is not None else None
    if nic is None or netdev is None:
        return
    path = (port.pci, port.rail)
    yield from _frame_size(path, port, netdev)
    yield from _addresses(path, port, netdev, seen)
    if port.bond is not None:
        yield from bonds.findings(path, devices, nic, port.bond, seen.bond)
    if netdev.operstate != "up":
        yield Finding("roce.link", path, f"{netdev.name} is {netdev.operstate or 'in no known state'}")
    yield from _rdma(path, devices, want, nic)
    if seen.traffic_class_rules:
        yield Finding("roce.traffic-class-rules", path, "; ".join(seen.traffic_class_rules))
    if seen.dcbx == "firmware" and "dcbx" not in (want.takeover or ()):
        yield Finding("foreign.dcbx", path, f"DCBX in the firmware of {netdev.name} decides PFC and ETS")
    if isinstance(seen.dcbx, Unknown) and "dcbx" not in (want.takeover or ()):
        yield Finding("foreign.dcbx", path, f"who owns the DCB settings: {seen.dcbx.reason}", unknown=True)
    qos = want.qos[port.qos]
    yield from _mask(path, seen, qos)
    small = short_buffers(port, netdev, seen, qos)
    if small:
        yield Finding("roce.headroom", path, small)


def _frame_size(path: Path, port: PortWant, netdev: Netdev) -> Iterator[Finding]:
    if port.mtu is not None and netdev.mtu != port.mtu:
        yield Finding("roce.mtu", path, f"{netdev.name} has {netdev.mtu}, the fabric wants {port.mtu}")
    bond, vlan = netdev.bond, _holder(port, netdev)
    if bond is not None and bond.mtu != netdev.mtu:
        yield Finding("roce.bond-mtu", path, f"{netdev.name} has {netdev.mtu}, its bond {bond.name} has {bond.mtu}")
    if port.mtu is not None and vlan is not None and not vlan.bond and vlan.mtu != port.mtu:
        yield Finding("roce.mtu", path, f"{vlan.name} has {vlan.mtu}, the fabric wants {port.mtu}")


def _holder(port: PortWant, netdev: Netdev) -> Optional[Upper]:
    """The interface above the port that holds its address."""
    return next((upper for upper in netdev.uppers if port.address in _known(upper.addresses)), None)


def _known(addresses: Union[Tuple[str, ...], Unknown]) -> Tuple[str, ...]:
    return addresses if isinstance(addresses, tuple) else ()


def _addresses(path: Path, port: PortWant, netdev: Netdev, seen: PortSeen) -> Iterator[Finding]:
    """The address on the port or above it, and its row in the GID table."""
    held: List[str] = list(_known(netdev.addresses))
    for upper in netdev.uppers:
        held += _known(upper.addresses)
    if port.address is not None and isinstance(netdev.addresses, tuple) and port.address not in held:
        yield Finding(
            "roce.address", path, f"{netdev.name} has {', '.join(held) or 'none'}, the fabric wants {port.address}"
        )
        return
    if not isinstance(seen.gids, tuple) or netdev.operstate != "up":
        return
    if port.address is None:
        missing = "" if gids.routable(seen.gids) else "no RoCE v2 GID that is not link-local"
    else:
        ip = ipaddress.ip_interface(port.address).ip
        missing = "" if gids.index(seen.gids, port.address) is not None else f"no RoCE v2 GID of {ip}"
    if missing:
        yield Finding("roce.gid", path, f"{missing}; {len(seen.gids)} GIDs in all")


def _rdma(path: Path, devices: Devices, want: RoceWant, nic: Nic) -> Iterator[Finding]:
    owner = lag_owner(devices, nic)
    name = nic.netdev.name if nic.netdev is not None else nic.pci
    if owner is not None:
        if owner.pci not in {port.pci for port in want.ports}:
            what = f"{owner.rdma[0].name} serves {name} too and belongs to {owner.pci}, which the fabric does not list"
            yield Finding("roce.rdma-device", path, what)
    elif len(nic.rdma) != 1:
        yield Finding("roce.rdma-device", path, f"{name} has {len(nic.rdma)} RDMA devices, not one")
    elif nic.rdma[0].link_layer != "Ethernet":
        yield Finding("roce.link-layer", path, f"{nic.rdma[0].name} is {nic.rdma[0].link_layer or 'unknown'}")


def _mask(path: Path, seen: PortSeen, qos: QosWant) -> Iterator[Finding]:
    """Where the firmware alone switches ECN, what it should be and is not."""
    mask, wanted = seen.ecn_rp, qos.ecn
    if seen.control != "inbox" or wanted is None or not isinstance(mask, tuple) or settings.rp_fits(mask, wanted):
        return
    parameter, on = cc_params.mask_parameter(path[0]), ", ".join(map(str, mask)) or "none"
    wish = f"priority {', '.join(map(str, wanted))}" if wanted else "none"
    yield Finding("roce.cc-mask", path, f"{parameter} has congestion control on for {on}, the fabric wants {wish}")


def short_buffers(port: PortWant, netdev: Netdev, seen: PortSeen, qos: QosWant) -> str:
    """Why the wanted buffers cannot be lossless, "" where they can or cannot be judged."""
    if qos.buffer_bytes is None or qos.prio_buffer is None or isinstance(netdev.speed_mbps, Unknown):
        return ""
    cable = qos.cable_m or (seen.cable_m if isinstance(seen.cable_m, int) else DEFAULT_CABLE_M)
    mtu = port.mtu or netdev.mtu
    least = headroom.least_buffer(cable, netdev.speed_mbps // 1000, mtu)
    short = headroom.too_small(qos.buffer_bytes, qos.prio_buffer, qos.pfc, least)
    listed = ", ".join(f"buffer {buffer} holds {size}" for buffer, size in short)
    return f"{listed} bytes, at least {least} at {cable} m and MTU {mtu}" if short else ""
