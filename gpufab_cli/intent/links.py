"""The ports of one host that carry no RoCE."""

from gpufab_cli.fabric.model import Resolved, ResolvedHost, ResolvedPort
from gpufab_cli.module_utils.links.want import LinksWant, LinkWant


def links_want(_: Resolved, host: ResolvedHost) -> LinksWant | None:
    """What the links feature is told about one host; None if all its ports carry RoCE."""
    ports = tuple(_port(port) for port in host.ports.values() if port.transport != "roce")
    return LinksWant(ports) if ports else None


def _port(port: ResolvedPort) -> LinkWant:
    return LinkWant(
        rail=port.name,
        pci=port.pin.pci,
        transport="infiniband" if port.transport == "infiniband" else "ethernet",
        mac=port.pin.mac,
        guid=port.pin.plain_guid,
        serial=port.pin.serial,
        psid=port.pin.psid,
        speed_gbps=port.speed_gbps,
    )
