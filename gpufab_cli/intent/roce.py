"""The RoCE ports of one host: what the profile wants of a rail, at the device that the lock pins it to."""

from gpufab_cli.errors import GpufabError
from gpufab_cli.intent.qos import qos_want
from gpufab_cli.module_utils.firmware.cards import slot
from gpufab_cli.module_utils.roce.want import BondWant, PortWant, RoceWant
from gpufab_cli.spec.addressing import port_address
from gpufab_cli.spec.bond import bond_of
from gpufab_cli.spec.lock import Lock, locked_port
from gpufab_cli.spec.model import FabricSpec, Host, Rail


def roce_want(spec: FabricSpec, lock: Lock, host: Host) -> RoceWant:
    """What the roce feature is told about one host.

    Raises:
        GpufabError: the lock has no device for one of its rails, or two cards for a bond.
    """
    ports = tuple(_port(spec, lock, host, rail) for rail in roce_rails(spec, host))
    _check_bonds(host, ports)
    qos = {name: qos_want(spec.qos[name]) for name in sorted({port.qos for port in ports})}
    return RoceWant(qos=qos, ports=ports, takeover=spec.profile_of(host).takeover or None)


def roce_rails(spec: FabricSpec, host: Host) -> tuple[Rail, ...]:
    """The ports of a host that carry RoCE; those of other networks are told nothing of it."""
    return tuple(rail for rail in spec.rails(host) if spec.networks[rail.network].transport == "roce")


def _port(spec: FabricSpec, lock: Lock, host: Host, rail: Rail) -> PortWant:
    network = spec.networks[rail.network]
    device = locked_port(lock, host, rail)
    address, bond = port_address(spec, host, rail), bond_of(spec.profile_of(host), rail)
    return PortWant(
        rail=str(rail),
        pci=device.pci,
        qos=network.qos or "",
        mac=device.mac,
        serial=device.serial,
        psid=device.psid,
        address=str(address) if address is not None else None,
        mtu=network.mtu,
        bond=BondWant(bond.name, bond.mode) if bond is not None else None,
    )


def _check_bonds(host: Host, ports: tuple[PortWant, ...]) -> None:
    """A RoCE LAG has both ports of one card."""
    first: dict[str, PortWant] = {}
    for port in ports:
        if port.bond is None:
            continue
        other = first.setdefault(port.bond.name, port)
        if not _one_card(other, port):
            what = f"{host.name}: {other.rail} and {port.rail} are of two cards, and so no RoCE LAG as {port.bond.name}"
            raise GpufabError(what, "bond the two ports of one card, or run gpufab lock --update where they moved")


def _one_card(one: PortWant, other: PortWant) -> bool:
    if one.serial is not None and other.serial is not None:
        return one.serial == other.serial
    return slot(one.pci) == slot(other.pci)
