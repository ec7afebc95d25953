"""The RoCE ports of one host: what the profile wants of a rail, at the device that the lock pins it to."""

from gpufab_cli.intent.qos import qos_want
from gpufab_cli.module_utils.roce.want import PortWant, RoceWant
from gpufab_cli.spec.addressing import port_address
from gpufab_cli.spec.lock import Lock, locked_port
from gpufab_cli.spec.model import FabricSpec, Host, Rail


def roce_want(spec: FabricSpec, lock: Lock, host: Host) -> RoceWant:
    """What the roce feature is told about one host.

    Raises:
        GpufabError: the lock has no device for one of its rails.
    """
    ports = tuple(_port(spec, lock, host, rail) for rail in roce_rails(spec, host))
    qos = {name: qos_want(spec.qos[name]) for name in sorted({port.qos for port in ports})}
    return RoceWant(qos=qos, ports=ports, takeover=spec.profile_of(host).takeover or None)


def roce_rails(spec: FabricSpec, host: Host) -> tuple[Rail, ...]:
    """The ports of a host that carry RoCE; those of other networks are told nothing of it."""
    return tuple(rail for rail in spec.rails(host) if spec.networks[rail.network].transport == "roce")


def _port(spec: FabricSpec, lock: Lock, host: Host, rail: Rail) -> PortWant:
    network = spec.networks[rail.network]
    device = locked_port(lock, host, rail)
    address = port_address(spec, host, rail)
    return PortWant(
        rail=str(rail),
        pci=device.pci,
        qos=network.qos or "",
        mac=device.mac,
        serial=device.serial,
        psid=device.psid,
        address=str(address) if address is not None else None,
        mtu=network.mtu,
    )
