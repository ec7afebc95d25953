"""What the nodes must show, straight from fabric.yml and its lock; the inventory on disk is not asked."""

import dataclasses
import ipaddress
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpufab_cli.compile.fabric import Fabric, load_fabric
from gpufab_cli.fabric.kept import KEPT
from gpufab_cli.fabric.model import ResolvedHost, ResolvedPort
from gpufab_cli.reach.target import Target


@dataclass(frozen=True)
class Port:
    """One RoCE port of one host.

    Attributes:
        address: the IP address as its GID is, IPv4 mapped into IPv6.
        settings: those of its QoS profile; one that is not managed is None.
        bond: name and mode of the bond that the site has put the port into, if it has.
    """

    host: str
    rail: str
    pci: str
    mac: str | None
    mtu: int | None
    address: ipaddress.IPv6Address | None
    settings: Mapping[str, Any]
    bond: tuple[str, str | None] | None = None

    def __str__(self) -> str:
        return f"{self.host}-{self.rail}"

    def wanted(self, name: str) -> Any:
        """What is wanted of the port's device or of its QoS settings; None: nothing is, nor anything in it."""
        found = self.settings[name] if name in self.settings else getattr(self, name)
        nothing = isinstance(found, Mapping) and all(value is None for value in found.values())
        return None if nothing else found


@dataclass(frozen=True)
class Card:
    """The card of one port of one host, as its firmware is to be.

    Attributes:
        parameters: what the port wants of it, by the name that mlxconfig has; ports of a card may want different ones.
        versions: the firmware version that each PSID is to have; None when that is not checked.
    """

    host: str
    rail: str
    pci: str
    parameters: Mapping[str, str]
    versions: Mapping[str, str] | None

    def __str__(self) -> str:
        return f"{self.host}-{self.rail}"

    def wanted(self, name: str) -> Any:
        """What is wanted of the card; None: nothing is."""
        return getattr(self, name) or None


@dataclass(frozen=True)
class Link:
    """One port of one host that carries no RoCE.

    Attributes:
        identity: the node GUID of an InfiniBand port, the MAC address of another; None when the lock has none.
    """

    host: str
    rail: str
    pci: str
    infiniband: bool
    identity: str | None
    speed_gbps: int | None

    def __str__(self) -> str:
        return f"{self.host}-{self.rail}"

    def wanted(self, name: str) -> Any:
        """What is wanted of the port; None: nothing is."""
        return getattr(self, name)


@dataclass(frozen=True)
class Node:
    """One host: the way to it, every wish by its feature, its RoCE ports, the others, cards with firmware wishes."""

    target: Target
    wishes: Mapping[str, Any]
    ports: tuple[Port, ...]
    links: tuple[Link, ...]
    cards: tuple[Card, ...]

    @property
    def kept(self) -> dict[str, Any]:
        """The wishes that lie on the node for its restore, by feature."""
        return {feature: wish for feature, wish in self.wishes.items() if feature in KEPT}

    @property
    def host(self) -> str:
        """Its name in the fabric."""
        return self.target.host

    def wishes_for(self, path: Sequence[str]) -> bool:
        """Whether the node is wanted to have something: a feature, and the keys that lead to it in its wish."""
        found: Any = self.wishes
        for key in path:
            found = found.get(key) if isinstance(found, Mapping) else None
        return found is not None and (len(path) == 1 or found not in ([], {}))

    def __str__(self) -> str:
        return self.host


def expected(fabric: Path, limit: str | None = None) -> tuple[Node, ...]:
    """What is expected of the active hosts, or of those that the limit names.

    Raises:
        GpufabError: fabric.yml or its lock is wrong, or the limit names no host.
    """
    return nodes(load_fabric(fabric, limit))


def nodes(declared: Fabric) -> tuple[Node, ...]:
    """What is expected of the hosts of a fabric that are locked."""
    return tuple(_node(declared.targets[host], declared.hosts[host], wants) for host, wants in declared.wants.items())


def _node(target: Target, host: ResolvedHost, wants: Mapping[str, Any]) -> Node:
    """A node: names, pins and addresses are those of the resolved fabric, settings those of the wants."""
    ports = [port for port in host.ports.values() if port.transport == "roce"]
    return Node(
        target,
        wishes={feature: _plain(want) for feature, want in wants.items()},
        ports=_ports(host, ports, wants["roce"].qos) if ports else (),
        links=tuple(_link(host, port) for port in host.ports.values() if port.transport != "roce"),
        cards=_cards(host, wants["firmware"]) if "firmware" in wants else (),
    )


def _link(host: ResolvedHost, port: ResolvedPort) -> Link:
    infiniband = port.transport == "infiniband"
    identity = port.pin.plain_guid if infiniband else port.pin.mac
    return Link(host.name, port.name, port.pin.pci, infiniband, identity, port.speed_gbps)


def _cards(host: ResolvedHost, want: Any) -> tuple[Card, ...]:
    pins = {name: port.pin for name, port in host.ports.items()}
    return tuple(Card(host.name, port.rail, pins[port.rail].pci, port.parameters, want.versions) for port in want.ports)


def _ports(host: ResolvedHost, ports: Sequence[ResolvedPort], qos: Mapping[str, Any]) -> tuple[Port, ...]:
    settings = {name: dataclasses.asdict(one) for name, one in qos.items()}
    return tuple(
        Port(
            host=host.name,
            rail=port.name,
            pci=port.pin.pci,
            mac=port.pin.mac,
            mtu=port.mtu,
            address=_gid(port.address),
            settings=settings[port.qos or ""],
            bond=(port.bond.name, port.bond.mode) if port.bond is not None else None,
        )
        for port in ports
    )


def _gid(address: str | None) -> ipaddress.IPv6Address | None:
    if address is None:
        return None
    found = ipaddress.ip_interface(address).ip
    return found if isinstance(found, ipaddress.IPv6Address) else ipaddress.IPv6Address(f"::ffff:{found}")


def _plain(want: Any) -> Any:
    """A want as the JSON data that a node keeps; what is not managed is left out."""
    return _pruned(json.loads(json.dumps(dataclasses.asdict(want))))


def _pruned(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _pruned(value) for key, value in data.items() if value is not None}
    return [_pruned(item) for item in data] if isinstance(data, list) else data
