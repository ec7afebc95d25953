"""Two ports of a card that the site has bonded: one RoCE LAG, with one RDMA device and one address."""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from gpufab_cli.module_utils.roce.want import BondMode
from gpufab_cli.module_utils.schema import NetdevName
from gpufab_cli.spec.base import Model
from gpufab_cli.spec.faults import Fault

if TYPE_CHECKING:
    from gpufab_cli.spec.model import FabricSpec, Profile, Rail

PORTS = 2
"""A RoCE LAG has the two ports of one card."""


class Bond(Model):
    """The bond of these two rails. The site makes it; gpufab checks it and sets QoS on both ports."""

    name: NetdevName
    """The name of the bond's interface, such as bond0. It holds the address: {rail} is then the first of the rails."""
    mode: BondMode | None = None
    """802.3ad, active-backup or balance-xor; not checked if left out."""


def bond_faults(spec: "FabricSpec", profile: "Profile") -> Iterator[Fault]:
    """Bonds that cannot be a RoCE LAG, and one bond in two places; paths are relative to the profile."""
    names: set[str] = set()
    for index, ports in enumerate(profile.ports):
        if ports.bond is None:
            continue
        network = spec.networks.get(ports.network)
        if network is not None and network.transport != "roce":
            yield Fault(("ports", index, "bond"), f"{ports.network} is no roce network", "leave bond out")
        if len(ports.rail) != PORTS:
            what = "a bond of one rail" if len(ports.rail) == 1 else f"a bond of {len(ports.rail)} rails"
            hint = "a RoCE LAG has the two ports of one card: rail: 0-1"
            yield Fault(("ports", index, "bond"), what, hint)
        if ports.bond.name in names:
            yield Fault(("ports", index, "bond", "name"), f"{ports.bond.name} is given twice")
        names.add(ports.bond.name)


def lead(profile: "Profile", rail: "Rail") -> "Rail":
    """The rail whose number the address of a port has: its own, or the first of those it is bonded with."""
    for ports in profile.ports:
        if ports.bond is not None and rail in ports.rails:
            return ports.rails[0]
    return rail


def bond_of(profile: "Profile", rail: "Rail") -> Bond | None:
    """The bond that a port is in."""
    return next((ports.bond for ports in profile.ports if ports.bond is not None and rail in ports.rails), None)
