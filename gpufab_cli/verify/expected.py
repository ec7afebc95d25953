"""What the nodes must show, straight from fabric.yml and its lock; the inventory on disk is not asked."""

import dataclasses
import fnmatch
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpufab_cli.errors import GpufabError, did_you_mean
from gpufab_cli.execute.target import Target
from gpufab_cli.intent.compile import compile_wants
from gpufab_cli.intent.targets import targets
from gpufab_cli.spec.addressing import port_address
from gpufab_cli.spec.load import load
from gpufab_cli.spec.lock import load_lock
from gpufab_cli.spec.model import FabricSpec


@dataclass(frozen=True)
class Port:
    """One RoCE port of one host. ``settings`` are those of its QoS profile; one that is not managed is None."""

    host: str
    rail: str
    pci: str
    mac: str | None
    mtu: int | None
    address: str | None
    settings: Mapping[str, Any]

    def __str__(self) -> str:
        return f"{self.host}-{self.rail}"

    def wanted(self, name: str) -> Any:
        """What is wanted of the port's device or of its QoS settings; None: nothing is."""
        return self.settings[name] if name in self.settings else getattr(self, name)


@dataclass(frozen=True)
class Node:
    """One host: the way to it, the wishes that it keeps for its restore, by feature, and its ports."""

    target: Target
    wishes: Mapping[str, Any]
    ports: tuple[Port, ...]

    @property
    def host(self) -> str:
        """Its name in the fabric."""
        return self.target.host

    def __str__(self) -> str:
        return self.host


def expected(fabric: Path, limit: Sequence[str] = ()) -> tuple[Node, ...]:
    """What is expected of the active hosts whose names match one of the patterns, or of all.

    Raises:
        SpecErrors: all that is wrong with fabric.yml or its lock.
        GpufabError: a pattern matches no active host.
    """
    spec = load(fabric)
    wants = compile_wants(spec, load_lock(fabric))
    ways = {target.host: target for target in targets(spec, fabric.parent)}
    return tuple(_node(spec, ways[host], wants[host]) for host in _limited(tuple(wants), limit))


def _limited(hosts: Sequence[str], limit: Sequence[str]) -> tuple[str, ...]:
    for pattern in limit:
        if not fnmatch.filter(hosts, pattern):
            raise GpufabError(f"--limit {pattern}: no active host matches", did_you_mean(pattern, hosts))
    return tuple(host for host in hosts if not limit or any(fnmatch.fnmatchcase(host, item) for item in limit))


def _node(spec: FabricSpec, target: Target, wants: Mapping[str, Any]) -> Node:
    wishes = {feature: _plain(want) for feature, want in wants.items() if feature != "node"}
    return Node(target, wishes, tuple(_ports(spec, target.host, wants["roce"])) if "roce" in wants else ())


def _ports(spec: FabricSpec, name: str, want: Any) -> list[Port]:
    host = next(host for host in spec.hosts if host.name == name)
    rails = {str(rail): rail for rail in spec.rails(host.profile)}
    ports = []
    for port in want.ports:
        address = port_address(spec, host, rails[port.rail])
        settings = dataclasses.asdict(want.qos[port.qos])
        text = str(address.ip) if address else None
        ports.append(Port(name, port.rail, port.pci, port.mac, port.mtu, text, settings))
    return ports


def _plain(want: Any) -> Any:
    """A want as the JSON data that a node keeps; what is not managed is left out."""
    return _pruned(json.loads(json.dumps(dataclasses.asdict(want))))


def _pruned(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _pruned(value) for key, value in data.items() if value is not None}
    return [_pruned(item) for item in data] if isinstance(data, list) else data
