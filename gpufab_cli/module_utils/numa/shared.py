"""Ports of one node in one IP subnet: any of them answers ARP for any address unless the kernel is told not to."""

import ipaddress
from typing import Dict, Iterator, Mapping, Optional, Tuple, Union

from ..change import ABSENT, Change
from ..devices import Devices, Netdev, Nic, Upper
from ..texts import natural
from .seen import Text
from .sysctls import ARP
from .want import SharedSubnet

_STRICTNESS = {"arp_ignore": (0, 1, 2), "rp_filter": (0, 2, 1)}
"""How much each value refuses (networking/ip-sysctl.rst): of arp_ignore 1 other interfaces' addresses, an address on lo
that peers know by ARP among them, 2 also senders of other subnets; of rp_filter 2 unreachable sources, 1 all that comes
by another way than answers go. arp_announce chooses the sender of requests and refuses nothing."""


def interfaces(nic: Nic) -> Iterator[Tuple[str, Tuple[str, ...]]]:
    """The interfaces of a port that have addresses, itself and those stacked on it, with IPv4 networks."""
    for netdev in nic.netdevs:
        holders: Tuple[Union[Netdev, Upper], ...] = (netdev, *netdev.uppers)
        for holder in holders:
            found = holder.addresses if isinstance(holder.addresses, tuple) else ()
            networks = tuple(net for net in map(_network, found) if net)
            if networks:
                yield holder.name, networks


def _network(address: str) -> str:
    """The IPv4 network of ADDRESS/PREFIX; "" for IPv6, which has no ARP, and for single addresses."""
    try:
        network = ipaddress.ip_interface(address).network
    except ValueError:
        return ""
    return str(network) if network.version == 4 and network.num_addresses > 1 else ""  # noqa: PLR2004


def sharing(devices: Devices, nic: Nic) -> Tuple[str, ...]:
    """The interfaces of a port whose subnet overlaps that of an interface of another port."""
    others = {name: networks for other in devices.nics if other.pci != nic.pci for name, networks in interfaces(other)}
    found = []
    for name, networks in interfaces(nic):
        rest = [network for other, theirs in others.items() if other != name for network in theirs]
        if any(_overlap(one, two) for one in networks for two in rest):
            found.append(name)
    return tuple(found)


def _overlap(one: str, two: str) -> bool:
    return ipaddress.IPv4Network(one).overlaps(ipaddress.IPv4Network(two))


def stricter(change: Change, every: Mapping[str, Text]) -> bool:
    """Whether the kernel answers less ARP, or lets fewer packets in, than before; ``every``: the values of ``all``.

    A value whose place in that order is not known, such as the kernel's arp_ignore 3 and 8, may answer what the new one
    does not.
    """
    name = change.path[1].rpartition("/")[2]
    order = _STRICTNESS.get(name, ())
    before, after, common = natural(change.current), natural(change.desired), natural(every.get(name, ABSENT)) or 0
    if not order or before is None or after is None or max(before, common) == max(after, common):
        return False
    then, now = max(before, common), max(after, common)
    return max(then, now) >= len(order) or order[now] > order[then]


def wanted(devices: Devices, nic: Nic, wish: Optional[SharedSubnet]) -> Dict[str, str]:
    """The settings of the port's interfaces that share a subnet, as INTERFACE/NAME."""
    if wish is None:
        return {}
    values = {name: getattr(wish, name) for name in ARP}
    return {
        f"{interface}/{name}": str(value)
        for interface in sharing(devices, nic)
        for name, value in values.items()
        if value is not None
    }
