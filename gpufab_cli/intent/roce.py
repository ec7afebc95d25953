"""The RoCE ports of one host, and the QoS profiles that they follow."""

from gpufab_cli.fabric.model import Resolved, ResolvedHost, ResolvedPort
from gpufab_cli.intent.qos import qos_want
from gpufab_cli.module_utils.roce.want import BondWant, PortWant, RoceWant


def roce_want(fabric: Resolved, host: ResolvedHost) -> RoceWant | None:
    """What the roce feature is told about one host; None if no port of it carries RoCE."""
    ports = tuple(_port(port) for port in host.ports.values() if port.transport == "roce")
    if not ports:
        return None
    qos = {name: qos_want(fabric.spec.qos[name]) for name in sorted({port.qos for port in ports})}
    return RoceWant(qos=qos, ports=ports, takeover=host.profile.takeover or None)


def _port(port: ResolvedPort) -> PortWant:
    return PortWant(
        rail=port.name,
        pci=port.pin.pci,
        qos=port.qos or "",
        mac=port.pin.mac,
        serial=port.pin.serial,
        psid=port.pin.psid,
        address=port.address,
        mtu=port.mtu,
        bond=BondWant(port.bond.name, port.bond.mode) if port.bond is not None else None,
    )
