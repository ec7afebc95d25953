"""The devices of living nodes → a draft of fabric.yml and its lock.

Only what the nodes say is written: networks by transport and speed, how many ports of each a host has, MTUs where all
agree. What they cannot say (which lossless class is wanted, what a port of unknown speed is for) stands there as a
comment, so that ``gpufab validate`` asks for what is missing.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from gpufab_cli.fabric.hostlist import fold
from gpufab_cli.module_utils.devices import Devices, Nic
from gpufab_cli.module_utils.dvfs.seen import cpu_list
from gpufab_cli.module_utils.firmware.cards import slot
from gpufab_cli.spec.bond import PORTS
from gpufab_cli.spec.draft import by_gpu, locked, pinned, speed_mbps, transport
from gpufab_cli.spec.lock import Lock
from gpufab_cli.spec.model import Connection, Rail
from gpufab_cli.spec.text import OneLine, dumps

SHOWN = 3  # things named in a comment; more are counted

QOS = """\
# Which lossless class the fabric has is for its switches and its owner to say, for example:
# qos:
#   NAME:
#     lossless: [{priority: 3, dscp: [26]}]
#     cnp: {priority: 6, dscp: 48}
#     ets: {3: 50, 0: 50}

"""


Bonds = tuple[tuple[str, tuple[int, ...]], ...]
"""Bonds by name, and the rails that are their ports."""


@dataclass(frozen=True)
class Found:
    """One host that answered. Its address is its name unless another was given."""

    name: str
    address: str
    devices: Devices

    @cached_property
    def networks(self) -> Mapping[str, tuple[Nic, ...]]:
        """The RDMA ports of each network, in the order of the GPUs that they go with."""
        found: dict[str, tuple[Nic, ...]] = {}
        for nic in sorted(self.devices.nics, key=lambda nic: nic.pci):
            name = _network(nic)
            if name and transport(nic) != "ethernet":
                found[name] = (*found.get(name, ()), nic)
        return {name: tuple(by_gpu(self.devices, nics)) for name, nics in found.items()}

    @property
    def kind(self) -> "Kind":
        """What makes it equal to others."""
        gpus = Counter(f"{gpu.vendor}:{gpu.device}" for gpu in self.devices.gpus)
        ports = ((name, len(nics), _bonds(nics)) for name, nics in sorted(self.networks.items()))
        return Kind(tuple(ports), tuple(sorted(gpus.items())))


@dataclass(frozen=True)
class Kind:
    """How many ports of each network, which of them bonded, and how many GPUs of each PCI vendor:device a host has."""

    ports: tuple[tuple[str, int, "Bonds"], ...]
    gpus: tuple[tuple[str, int], ...]

    @property
    def name(self) -> str:
        """A name that says as much."""
        return f"gpus-{sum(count for _, count in self.gpus)}-ports-{sum(count for _, count, _ in self.ports)}"


@dataclass(frozen=True)
class Drafted:
    """The text of both files, as far as the nodes tell them."""

    fabric: str
    lock: Lock


def discover(found: Iterable[Found], missing: Iterable[str], connection: Connection) -> Drafted:
    """Draft a fabric.

    Args:
        found: the hosts that answered, in the order in which they were named.
        missing: why each of the others is not in the draft.
        connection: how they were reached.

    Raises:
        GpufabError: a device's identity is garbage, two hosts answered as one, or a MAC address is cloned.
    """
    hosts = tuple(found)
    kinds = _kinds(hosts)
    parts = [
        "# Drafted by gpufab discover: what the nodes say of themselves. Read it, name things, add what is missing.\n"
    ]
    parts += [f"# Not in it: {_plain(reason)}\n" for reason in missing]
    parts += ["---\nname: drafted   # choose one\n\nnetworks:\n", *_networks(hosts), "\n"]
    parts += [QOS] if any(name.startswith("roce") for host in hosts for name in host.networks) else []
    parts += ["profiles:\n", *_profiles(hosts, kinds), "\n", _hosts(hosts, kinds), "\n", _connection(connection)]
    return Drafted("".join(parts), locked({host.name: pinned(host.name, _rails(host), host.devices) for host in hosts}))


def _bonds(nics: Iterable[Nic]) -> Bonds:
    """The bonds of two ports of one card, which may be a RoCE LAG."""
    members: dict[str, list[tuple[int, Nic]]] = {}
    for number, nic in enumerate(nics):
        bond = nic.netdev.bond if nic.netdev is not None else None
        if bond is not None and transport(nic) == "roce" and re.fullmatch("[A-Za-z0-9][A-Za-z0-9_.-]{0,14}", bond.name):
            members.setdefault(bond.name, []).append((number, nic))
    cards = {name: {_card(nic) for _, nic in found} for name, found in members.items()}
    return tuple(
        (name, tuple(number for number, _ in found))
        for name, found in members.items()
        if len(found) == PORTS and len(cards[name]) == 1
    )


def _card(nic: Nic) -> str:
    return nic.serial if isinstance(nic.serial, str) else slot(nic.pci)


def _network(nic: Nic) -> str:
    """The network that a port seems to be on; "" when it is no port, or its speed is not known."""
    kind, speed = transport(nic), speed_mbps(nic)
    return f"{kind}-{speed // 1000}g" if kind and speed and speed >= 1000 else ""  # noqa: PLR2004 (a gigabit)


def _rails(host: Found) -> dict[Rail, Nic]:
    return {Rail(name, number): nic for name, nics in host.networks.items() for number, nic in enumerate(nics)}


def _kinds(hosts: Iterable[Found]) -> dict[Kind, str]:
    """A profile's name for each kind of host."""
    names: dict[Kind, str] = {}
    for kind in dict.fromkeys(host.kind for host in hosts):
        same = sum(name.startswith(kind.name) for name in names.values())
        names[kind] = f"{kind.name}-{same + 1}" if same else kind.name
    return names


def _networks(hosts: tuple[Found, ...]) -> Iterator[str]:
    names = sorted({_network(nic) for host in hosts for nic in host.devices.nics} - {""})
    if not names:
        yield "  # no port of a known speed was found on any host\n"
    for name in names:
        kind, _, speed = name.partition("-")
        rails = max(len(host.networks.get(name, ())) for host in hosts)
        yield f"  {name}:\n    transport: {kind}\n    speed_gbps: {speed[:-1]}\n"
        if rails:
            yield f"    rails: {rails}\n"
        yield from _mtu(name, hosts)
        if kind == "roce":
            yield "    # qos: NAME   # the QoS profile that its ports follow, declared below\n"
            yield from _addresses(name, hosts)


def _mtu(network: str, hosts: Iterable[Found]) -> Iterator[str]:
    ports = [nic.netdev for host in hosts for nic in host.networks.get(network, ())]
    seen = sorted({netdev.mtu for netdev in ports if netdev is not None})
    if len(seen) == 1 and network.startswith("roce"):
        yield f"    mtu: {seen[0]}\n"
    elif seen:
        yield f"    # mtu: the ports have {', '.join(map(str, seen))}\n"


def _addresses(network: str, hosts: Iterable[Found]) -> Iterator[str]:
    for host in hosts:
        netdevs = [nic.netdev for nic in host.networks.get(network, ()) if nic.netdev is not None]
        known = (netdev.addresses for netdev in netdevs if isinstance(netdev.addresses, tuple))
        seen = [text for addresses in known for text in addresses if ":" not in text]  # the pattern is one of IPv4
        if seen:
            more = ", ..." if len(seen) > SHOWN else ""
            yield f"    # addressing: {{ipv4: ...}}   # {host.name} has {_plain(', '.join(seen[:SHOWN]))}{more}\n"
            return


def _profiles(hosts: Iterable[Found], kinds: Mapping[Kind, str]) -> Iterator[str]:
    for kind, name in kinds.items():
        gpus = ", ".join(f"{count} GPUs {_plain(model)}" for model, count in kind.gpus) or "no GPU"
        yield f"  {name}:   # {gpus}\n    ports:\n" if kind.ports else f"  {name}: {{}}   # {gpus}\n"
        for network, count, bonds in kind.ports:
            for bond, rails in bonds:
                yield f"      - {{network: {network}, rail: {cpu_list(rails)}, bond: {{name: {bond}}}}}\n"
            alone = set(range(count)) - {rail for _, rails in bonds for rail in rails}
            if alone:
                yield f"      - {{network: {network}, rail: {_rail(cpu_list(alone))}}}\n"
        for line in _unplaced(host for host in hosts if host.kind == kind):
            yield f"    # not drafted: {line}\n"


def _rail(numbers: str) -> str:
    return f'"{numbers}"' if "," in numbers else numbers


def _unplaced(hosts: Iterable[Found]) -> Iterator[str]:
    """Ports that may be of a network, if they only had a link."""
    for host in hosts:
        for nic in host.devices.nics:
            if transport(nic) in ("roce", "infiniband") and not _network(nic):
                yield f"{host.name} {nic.pci} {_plain(nic.driver)}, {transport(nic)}, speed unknown: is its link down?"


def _hosts(hosts: tuple[Found, ...], kinds: Mapping[Kind, str]) -> str:
    entries: list[OneLine] = []
    for kind, profile in kinds.items():
        members = [host for host in hosts if host.kind == kind]
        plain = fold(host.name for host in members if host.address == host.name)
        entries += [OneLine(name=name, profile=profile) for name in re.split(r",(?![^\[]*\])", plain) if name]
        entries += [
            OneLine(name=host.name, profile=profile, address=host.address)
            for host in members
            if host.address != host.name
        ]
    return dumps({"hosts": entries})


def _connection(connection: Connection) -> str:
    said = connection.model_dump(exclude_unset=True, exclude_none=True)
    return dumps({"connection": said}) if said else "# connection: {user: ops}\n"


def _plain(text: str) -> str:
    """What a node says of itself, as a comment can hold it."""
    return re.sub(r"[^A-Za-z0-9 ._:/,()-]", "?", text)[:160]
