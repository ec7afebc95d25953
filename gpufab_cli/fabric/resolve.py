"""fabric.yml and its lock → the resolved fabric. Nothing else reads the two together."""

from pathlib import Path

from gpufab_cli.errors import GpufabError, NotLockedError
from gpufab_cli.fabric.model import Pin, Resolved, ResolvedHost, ResolvedPort
from gpufab_cli.module_utils.firmware.cards import slot
from gpufab_cli.spec.addressing import port_address
from gpufab_cli.spec.bond import bond_of
from gpufab_cli.spec.load import load
from gpufab_cli.spec.lock import FILE_NAME, Lock, LockedHost, LockedPort, load_lock
from gpufab_cli.spec.model import FabricSpec, Host, Rail


def load_resolved(path: Path) -> Resolved:
    """Read a fabric.yml and the lock beside it, and resolve them.

    Raises:
        GpufabError: one of the files is wrong.
    """
    return resolve(load(path), load_lock(path))


def resolve(spec: FabricSpec, lock: Lock) -> Resolved:
    """Resolve every host that is not absent.

    A host of which the lock lacks a port, or all, holds up no other: at bring-up some do not answer yet.
    """
    hosts: dict[str, ResolvedHost] = {}
    unlocked: dict[str, NotLockedError] = {}
    wrong: dict[str, GpufabError] = {}
    for host in spec.in_state("active", "maintenance"):
        known = lock.hosts.get(host.name)
        hosts[host.name] = found = _host(spec, host, known)
        if host.state != "active":
            continue
        lacking, odd = _lacking(found, known), _two_cards(found)
        if lacking is not None:
            unlocked[host.name] = lacking
        elif odd is not None:
            wrong[host.name] = odd
    return Resolved(spec, hosts, unlocked, wrong)


def locked_hosts(path: Path) -> frozenset[str]:
    """Read which hosts are in the lock beside a fabric.yml, be it with all their devices or not.

    Raises:
        GpufabError: the lock is wrong.
    """
    return frozenset(load_lock(path).hosts)


def locked_rails(path: Path, host: str) -> dict[str, str]:
    """Read which rails the lock beside a fabric.yml pins on a host, by PCI address; none where there is no lock.

    Raises:
        GpufabError: the lock is wrong.
    """
    known = load_lock(path).hosts.get(host)
    return {port.pci: rail for rail, port in known.ports.items()} if known else {}


def _host(spec: FabricSpec, host: Host, known: LockedHost | None) -> ResolvedHost:
    devices = known.ports if known is not None else {}
    return ResolvedHost(
        name=host.name,
        address=host.address,
        kind=host.profile,
        profile=spec.profile_of(host),
        state=host.state,
        leaf=host.leaf,
        overridden=bool(spec.host_entries[host.entry].override),
        ports={
            name: _port(spec, host, rail, devices[name]) for rail in spec.rails(host) if (name := str(rail)) in devices
        },
        gpus=tuple(gpu.pci for gpu in known.gpus) if known is not None else (),
    )


def _port(spec: FabricSpec, host: Host, rail: Rail, device: LockedPort) -> ResolvedPort:
    network = spec.networks[rail.network]
    address = port_address(spec, host, rail)
    return ResolvedPort(
        pin=Pin(device.pci, device.mac, device.guid, device.serial, device.psid),
        rail=rail,
        transport=network.transport,
        address=str(address) if address is not None else None,
        mtu=network.mtu,
        speed_gbps=network.speed_gbps,
        qos=network.qos,
        bond=bond_of(spec.profile_of(host), rail),
    )


def _lacking(host: ResolvedHost, known: LockedHost | None) -> NotLockedError | None:
    """What the lock lacks of a host: all of it, or its first port without a device."""
    if known is None:
        hint = f"when it answers: gpufab lock --limit {host.name}, gpufab render; all others go on without it"
        return NotLockedError(f"{FILE_NAME}: {host.name} is not in it", hint)
    rail = next((rail for rail in host.profile.rails if str(rail) not in host.ports), None)
    if rail is None:
        return None
    return NotLockedError(f"{FILE_NAME}: no device for {host.name} {rail}", f"run gpufab lock --update {host.name}")


def _two_cards(host: ResolvedHost) -> GpufabError | None:
    """A bond over two cards: a RoCE LAG has both ports of one."""
    first: dict[str, ResolvedPort] = {}
    for port in host.ports.values():
        if port.bond is None:
            continue
        other = first.setdefault(port.bond.name, port)
        if not _one_card(other.pin, port.pin):
            what = f"{host.name}: {other.name} and {port.name} are of two cards, and so no RoCE LAG as {port.bond.name}"
            return GpufabError(what, "bond the two ports of one card, or run gpufab lock --update where they moved")
    return None


def _one_card(one: Pin, other: Pin) -> bool:
    if one.serial is not None and other.serial is not None:
        return one.serial == other.serial
    return slot(one.pci) == slot(other.pci)
