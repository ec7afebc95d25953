"""Interrupts, memory and PCI Express of one host: what its profile wants, at the RDMA ports that the lock pins."""

from gpufab_cli.module_utils.identity import plain_guid
from gpufab_cli.module_utils.numa import want
from gpufab_cli.spec.lock import Lock, locked_port
from gpufab_cli.spec.model import FabricSpec, Host, Rail
from gpufab_cli.spec.numa import SharedSubnet

RDMA = ("roce", "infiniband")


def numa_want(spec: FabricSpec, lock: Lock, host: Host) -> want.NumaWant | None:
    """What the numa feature is told about one host; None where its profile says nothing of it.

    Raises:
        GpufabError: the lock has no device for one of its rails.
    """
    wish = spec.profile_of(host).numa
    if wish is None:
        return None
    rails = [rail for rail in spec.rails(host) if spec.networks[rail.network].transport in RDMA]
    return want.NumaWant(
        ports=tuple(_port(lock, host, rail, position) for position, rail in enumerate(rails)),
        irq=wish.irq,
        irqbalance=True if wish.irq is not None else None,
        balancing=wish.balancing,
        zone_reclaim=wish.zone_reclaim,
        transparent_hugepages=wish.transparent_hugepages,
        hugepages=wish.hugepages,
        shared_subnet=_shared(wish.shared_subnet) if wish.shared_subnet is not None else None,
        max_read_request=wish.max_read_request,
        use=wish.use,
        set_acs=True if wish.acs == "set" else None,
        nodes=wish.nodes,
    )


def _shared(wish: SharedSubnet) -> want.SharedSubnet:
    return want.SharedSubnet(wish.arp_ignore, wish.arp_announce, wish.rp_filter)


def _port(lock: Lock, host: Host, rail: Rail, position: int) -> want.PortWant:
    device = locked_port(lock, host, rail)
    return want.PortWant(
        rail=str(rail),
        pci=device.pci,
        position=position,
        mac=device.mac,
        guid=plain_guid(device.guid) if device.guid else None,
        serial=device.serial,
        psid=device.psid,
    )
