"""Values that only one place in a fabric may have: IP addresses, MAC addresses and GUIDs."""

import ipaddress
from collections.abc import Iterator, Mapping

from gpufab_cli.module_utils.devices import Netdev, Upper
from gpufab_cli.module_utils.snapshot import Snapshot

Owned = tuple[tuple[str, str], ...]
"""Each value and where on its host it is."""

_NO_MAC = ("", "00:00:00:00:00:00")


def macs(snapshot: Snapshot) -> Owned | None:
    """The ports' own MAC addresses, those of VFs too."""
    netdevs = (netdev for nic in snapshot.devices.nics for netdev in nic.netdevs)
    return tuple((netdev.mac, netdev.name) for netdev in netdevs if netdev.mac not in _NO_MAC) or None


def addresses(snapshot: Snapshot) -> Owned | None:
    """The IP addresses of ports, and of the bonds and VLANs on them, as far as they are known."""
    netdevs = (netdev for nic in snapshot.devices.nics for netdev in nic.netdevs)
    return tuple(dict.fromkeys(owned for netdev in netdevs for owned in _addresses(netdev))) or None


def _addresses(netdev: Netdev) -> Iterator[tuple[str, str]]:
    interfaces: list[Netdev | Upper] = [netdev, *netdev.uppers]
    for interface in interfaces:
        for text in interface.addresses if isinstance(interface.addresses, tuple) else ():
            address = ipaddress.ip_interface(text).ip
            if not (address.is_link_local or address.is_loopback):
                yield str(address), interface.name


def shared(facts: Mapping[str, Owned], *, on_one_host: bool = True) -> Iterator[tuple[tuple[str, ...], str]]:
    """The hosts that share a value, and in words what shares it.

    Args:
        on_one_host: whether a value that only one host has, in several places, counts.
    """
    owners: dict[str, list[tuple[str, str]]] = {}
    for host in sorted(facts):
        for value, place in facts[host]:
            owners.setdefault(value, []).append((host, place))
    for value, places in sorted(owners.items()):
        hosts = tuple(dict.fromkeys(host for host, _ in places))
        if len(hosts) > 1 or (on_one_host and len(places) > 1):
            yield hosts, f"{value} is that of " + ", ".join(f"{place} on {host}" for host, place in places)
