"""What each NIC function is there for, as far as the node shows it.

The rails are one group of equal ports: those of the lock's network, else those of one transport and speed, whichever is
nearest to most GPUs. Nearness alone does not do: storage ports hang on the switches of GPUs too.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from gpufab_cli.module_utils.devices import Devices, Nic
from gpufab_cli.module_utils.topology.pairing import Pairing, pair
from gpufab_cli.spec.draft import speed_mbps, transport

_NODE_USES = frozenset({"default-route", "ssh"})


class Role(StrEnum):
    """What a NIC function is there for."""

    RAIL = "rail"
    STORAGE = "storage"
    """RDMA and a link, but no rail: storage most often. What the node has root or a file system on for certain."""
    MANAGEMENT = "management"
    NVSWITCH = "nvswitch"
    """It manages the NVSwitches of the GPU baseboard and is no port of any network."""
    UNUSED = "unused"
    """No link."""


@dataclass(frozen=True)
class Rails:
    """The group of ports that are the rails, and which GPU each goes with."""

    ports: frozenset[str] = frozenset()
    pairing: Pairing = field(default_factory=Pairing)


def rails(devices: Devices, networks: Mapping[str, str]) -> Rails:
    """Which ports are the rails.

    Args:
        devices: those of one node.
        networks: which network a port is on, by PCI address, as the lock has it; empty where there is no lock.
    """
    groups: dict[str, list[Nic]] = {}
    for nic in devices.nics:
        name = networks.get(nic.pci) if networks else _kind(nic)
        if name and not nic.is_vf and not nic.nvswitch:
            groups.setdefault(name, []).append(nic)
    spare = {name: [nic for nic in nics if not _uses(nic) & _NODE_USES] for name, nics in groups.items()}
    chosen = {name: nics for name, nics in spare.items() if nics} or groups
    pairings = {name: pair(devices, [nic.pci for nic in nics]) for name, nics in chosen.items()}
    ranked = sorted(pairings, key=lambda name: (*_claim(pairings[name], chosen[name]), name))
    if not ranked:
        return Rails()
    pairing = pairings[ranked[0]]
    paired = {item.nic for item in (*pairing.pairs, *pairing.remote)}
    # A port that the lock has is a rail also while its GPU is missing.
    return Rails(frozenset(nic.pci for nic in chosen[ranked[0]] if networks or nic.pci in paired), pairing)


def _claim(pairing: Pairing, nics: Iterable[Nic]) -> tuple[int, int, int, bool]:
    """How good a claim a group has to be the rails; the lowest is best."""
    near = {item.gpu for item in pairing.pairs if item.relation.near}
    speeds = [speed_mbps(nic) or 0 for nic in nics]
    infiniband = any(transport(nic) == "infiniband" for nic in nics)
    return -len(near), -len({item.nic for item in pairing.pairs}), -max(speeds), not infiniband


def _kind(nic: Nic) -> str:
    """Equal ports have one name; "" for what can be no rail."""
    speed = speed_mbps(nic)
    return f"{transport(nic)}-{speed}" if transport(nic) in ("roce", "infiniband") and speed else ""


def roles(devices: Devices, networks: Mapping[str, str], found: Rails) -> dict[str, Role]:
    """The role of each NIC function that is no VF, by PCI address."""
    return {
        nic.pci: Role.RAIL if nic.pci in found.ports else _other(nic, nic.pci in networks)
        for nic in devices.nics
        if not nic.is_vf
    }


def _other(nic: Nic, locked: bool) -> Role:
    if nic.nvswitch:
        return Role.NVSWITCH
    uses = _uses(nic)
    if uses & _NODE_USES:
        return Role.MANAGEMENT
    if uses or locked:
        return Role.STORAGE
    if speed_mbps(nic) is None:
        return Role.UNUSED
    return Role.STORAGE if transport(nic) in ("roce", "infiniband") else Role.MANAGEMENT


def _uses(nic: Nic) -> frozenset[str]:
    """What of the node goes over the function; nothing known is nothing said."""
    known = (netdev.carries for netdev in nic.netdevs if isinstance(netdev.carries, tuple))
    return frozenset(use for uses in known for use in uses)
