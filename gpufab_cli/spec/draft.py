"""Node snapshots → the lock they suggest.

A host that is locked stays as it is unless it is asked for: afterwards a missing, moved or replaced device is a finding
of the audit, never a silent renumbering of the others.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from pydantic import ValidationError

from gpufab_cli.errors import GpufabError, SpecErrors, did_you_mean
from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.devices import Devices, Nic
from gpufab_cli.module_utils.topology.pairing import order, pair
from gpufab_cli.spec.faults import Fault, Faults
from gpufab_cli.spec.lock import FILE_NAME, Lock, LockedGpu, LockedHost, LockedPort
from gpufab_cli.spec.model import FabricSpec, Host, Network, Rail, Transport

RDMA_DRIVERS = frozenset({"bnxt_en", "ice", "ionic", "mlx5_core"})
"""Drivers of Ethernet functions that carry RDMA (drivers/infiniband/hw of the Linux kernel, and what they sit on)."""


@dataclass(frozen=True)
class Draft:
    """A lock, and why hosts are not in it."""

    lock: Lock
    errors: tuple[GpufabError, ...]


def wanted_hosts(spec: FabricSpec, lock: Lock, update: Collection[str] = ()) -> tuple[Host, ...]:
    """The hosts that have to be looked at: active ones that are not in the lock, and those to update.

    Raises:
        GpufabError: a host to update is not in the fabric, or absent from it.
    """
    reachable = spec.in_state("active", "maintenance")
    known = [host.name for host in reachable]
    for name in update:
        if name not in known:
            raise GpufabError(f"no host {name!r} to update", did_you_mean(name, known))
    return tuple(
        host for host in reachable if host.name in update or (host.state == "active" and host.name not in lock.hosts)
    )


def draft(spec: FabricSpec, lock: Lock, found: Mapping[str, Devices]) -> Draft:
    """The lock with the hosts that were looked at in their place, and without those that left the fabric.

    Args:
        spec: the fabric.
        lock: the lock as it is.
        found: the devices of each host to lock anew, by name.

    Raises:
        SpecErrors: one device would be in two places; two hosts answered as one, or a MAC address is cloned.
    """
    hosts = {host.name: lock.hosts[host.name] for host in spec.hosts if host.name in lock.hosts}
    errors: list[GpufabError] = []
    for host in spec.hosts:
        if host.name in found:
            try:
                hosts[host.name] = lock_host(spec, host, found[host.name], lock.hosts.get(host.name))
            except GpufabError as error:
                errors.append(error)
    return Draft(locked(hosts), tuple(errors))


def locked(hosts: Mapping[str, LockedHost]) -> Lock:
    """The lock of these hosts.

    Raises:
        SpecErrors: one device would be in two places; two hosts answered as one, or a MAC address is cloned.
    """
    try:
        return Lock(hosts=dict(hosts))
    except ValidationError as failure:
        raise SpecErrors(list(_clashes(failure))) from failure


def _clashes(failure: ValidationError) -> Iterator[GpufabError]:
    for detail in failure.errors():
        cause = detail.get("ctx", {}).get("error")
        for fault in cause.faults if isinstance(cause, Faults) else ():
            hint = fault.hint if isinstance(fault, Fault) else ""
            yield GpufabError(f"{FILE_NAME}: {fault.loc[1]} {fault.loc[3]}: {fault.message}", hint)


def lock_host(spec: FabricSpec, host: Host, devices: Devices, before: LockedHost | None = None) -> LockedHost:
    """The devices of one host, rails in the order of the GPUs that they go with.

    Ports that the host had stay the rails they were: while a GPU is missing its rail has no place of its own.

    Args:
        spec: the fabric.
        host: the host.
        devices: what it has.
        before: what the lock has of it.

    Raises:
        GpufabError: not exactly as many ports fit as the profile has, or a device's identity is garbage.
    """
    groups: dict[_Group, list[Rail]] = {}
    for item in spec.profile_of(host).ports:
        groups.setdefault((item.network, item.pci), []).extend(item.rails)
    chosen: dict[Rail, Nic] = {}
    for group, rails in groups.items():
        fitting = _fitting(spec, host, group, len(rails), devices)
        chosen |= _kept(rails, fitting, before) or zip(rails, fitting, strict=True)
    _check_disjoint(host, chosen)
    return pinned(host.name, {rail: chosen[rail] for rail in spec.rails(host)}, devices)


def pinned(host: str, chosen: Mapping[Rail, Nic], devices: Devices) -> LockedHost:
    """The lock's entry of a host whose ports have been chosen.

    Raises:
        GpufabError: a device's identity is garbage.
    """
    try:
        ports = {str(rail): _port(nic) for rail, nic in chosen.items()}
        return LockedHost(ports=ports, gpus=tuple(LockedGpu(pci=gpu.pci) for gpu in devices.gpus))
    except ValidationError as failure:
        detail: Any = failure.errors()[0]
        raise GpufabError(f"{host}: a device reports {detail['input']!r:.60} as its {detail['loc'][-1]}") from failure


def _kept(rails: Iterable[Rail], nics: Iterable[Nic], before: LockedHost | None) -> dict[Rail, Nic] | None:
    """The ports as the rails they were, where they are at the same addresses as then."""
    places = {nic.pci: nic for nic in nics}
    known = {rail: before.ports[str(rail)].pci for rail in rails if before and str(rail) in before.ports}
    same = set(known.values()) == set(places) and len(known) == len(places)
    return {rail: places[pci] for rail, pci in known.items()} if same else None


_Group = tuple[str, str]
"""A network, and the PCI addresses of the ports on it."""


def _fitting(spec: FabricSpec, host: Host, group: _Group, count: int, devices: Devices) -> list[Nic]:
    network, pci = group
    fits = (nic for nic in devices.nics if fnmatchcase(nic.pci, pci) and _fits(nic, spec.networks[network]))
    found = by_gpu(devices, fits)
    # More are like them: those that are no GPU's nearest are for something else.
    pairing = pair(devices, [nic.pci for nic in found])
    nearest = [nic for nic in found if pairing.gpus_of(nic.pci)]
    chosen = nearest if len(nearest) == count else found
    if len(chosen) == count:
        return chosen
    listed = ", ".join(_told(nic) for nic in devices.nics if not nic.is_vf) or "no NIC at all"
    hint = f"found: {listed}; write the ports of {host.name} into {FILE_NAME} by hand if that is right"
    raise GpufabError(f"{host.name}: {len(found)} ports fit network {network}, its profile has {count}", hint)


def by_gpu(devices: Devices, nics: Iterable[Nic]) -> list[Nic]:
    """Ports in the order of their GPUs; one that has none where its PCI address would be among those of GPUs."""
    ports = {nic.pci: nic for nic in nics}
    pairing = pair(devices, ports)
    first = {pci: min(map(order, pairing.gpus_of(pci)), default=order(pci)) for pci in ports}
    return [ports[pci] for pci in sorted(ports, key=lambda pci: (first[pci], order(pci)))]


def _fits(nic: Nic, network: Network) -> bool:
    """Whether a function can be a port of a network. A port that is down tells no speed, and may be one."""
    if transport(nic) not in _CARRIED_BY[network.transport]:
        return False
    speed = speed_mbps(nic)
    return network.speed_gbps is None or speed is None or speed == network.speed_gbps * 1000


_CARRIED_BY = {"roce": ("roce",), "infiniband": ("infiniband",), "ethernet": ("ethernet", "roce")}


def transport(nic: Nic) -> Transport | None:
    """What a function can carry: RoCE wants a driver for it; None for VFs and what is no port of a network."""
    if nic.is_vf or nic.nvswitch:
        return None
    if _link_layer(nic) == "InfiniBand":
        return "infiniband"
    if _link_layer(nic) == "Ethernet" and nic.driver in RDMA_DRIVERS:
        return "roce"
    if not nic.rdma and nic.driver in RDMA_DRIVERS and nic.netdev is not None and nic.netdev.bond is not None:
        return "roce"  # in a RoCE LAG one port holds the RDMA device of both
    return "ethernet" if nic.netdevs else None


def _link_layer(nic: Nic) -> str:
    return nic.rdma[0].link_layer if nic.rdma else ""


def speed_mbps(nic: Nic) -> int | None:
    """Mb/s of the link; None when unknown.

    InfiniBand tells it as the port's rate, ``400 Gb/sec (4X NDR)``; one that is down gives its lowest, not its own.
    """
    if _link_layer(nic) == "InfiniBand":
        return _rate(nic)
    if nic.rdma and not nic.netdevs:  # its netdev is in a container
        return _rate(nic)
    if nic.netdev is None or isinstance(nic.netdev.speed_mbps, Unknown):
        return None
    return nic.netdev.speed_mbps


def _rate(nic: Nic) -> int | None:
    rate = re.match(r"[0-9]+", nic.rdma[0].rate) if nic.rdma[0].state == "ACTIVE" else None
    return int(rate[0]) * 1000 if rate else None


def _told(nic: Nic) -> str:
    speed = speed_mbps(nic)
    shown = f"{speed // 1000}G" if speed is not None else "speed unknown"
    return f"{nic.pci} {nic.driver or 'no driver'} {_link_layer(nic) or 'no RDMA'} {shown}"


def _check_disjoint(host: Host, chosen: Mapping[Rail, Nic]) -> None:
    owners: dict[str, Rail] = {}
    for rail, nic in chosen.items():
        owner = owners.setdefault(nic.pci, rail)
        if owner != rail:
            hint = "tell them apart by speed_gbps of the networks, or by pci: of the profile's ports"
            raise GpufabError(f"{host.name}: {nic.pci} fits both {owner} and {rail}", hint)


def _port(nic: Nic) -> LockedPort:
    """What identifies a port. What the device would not tell is left out, and so not compared later."""
    infiniband = _link_layer(nic) == "InfiniBand"  # its netdev has an address of 20 bytes that changes
    return LockedPort(
        pci=nic.pci,
        mac=(nic.netdev.mac or None) if nic.netdev and not infiniband else None,
        guid=(nic.rdma[0].node_guid or None) if infiniband else None,
        serial=nic.serial if isinstance(nic.serial, str) else None,
        psid=nic.psid if isinstance(nic.psid, str) else None,
    )
