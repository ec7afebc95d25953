"""The ports of one host that carry no RoCE, at the devices that the lock pins them to."""

from gpufab_cli.module_utils.identity import plain_guid
from gpufab_cli.module_utils.links.want import LinksWant, LinkWant
from gpufab_cli.spec.lock import Lock, locked_port
from gpufab_cli.spec.model import FabricSpec, Host, Rail


def links_want(spec: FabricSpec, lock: Lock, host: Host) -> LinksWant | None:
    """What the links feature is told about one host; None if all its ports carry RoCE.

    Raises:
        GpufabError: the lock has no device for one of its rails.
    """
    ports = tuple(port for rail in spec.rails(host) if (port := _port(spec, lock, host, rail)) is not None)
    return LinksWant(ports) if ports else None


def _port(spec: FabricSpec, lock: Lock, host: Host, rail: Rail) -> LinkWant | None:
    network = spec.networks[rail.network]
    if network.transport == "roce":
        return None
    device = locked_port(lock, host, rail)
    return LinkWant(
        rail=str(rail),
        pci=device.pci,
        transport=network.transport,
        mac=device.mac,
        guid=plain_guid(device.guid) if device.guid else None,
        serial=device.serial,
        psid=device.psid,
        speed_gbps=network.speed_gbps,
    )
