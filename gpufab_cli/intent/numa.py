"""Interrupts, memory and PCI Express of one host: what its profile wants, at the RDMA ports that the lock pins."""

from gpufab_cli.module_utils.identity import plain_guid
from gpufab_cli.module_utils.kernel.want import AcsWant
from gpufab_cli.module_utils.numa import want
from gpufab_cli.spec.lock import Lock, locked_port
from gpufab_cli.spec.model import FabricSpec, Host, Rail
from gpufab_cli.spec.numa import SharedSubnet

RDMA = ("roce", "infiniband")
ARGUMENT = "kernel-argument"
SETTING = ("set", ARGUMENT)


def numa_want(spec: FabricSpec, lock: Lock, host: Host) -> want.NumaWant | None:
    """What the numa feature is told about one host; None where its profile says nothing of it.

    Raises:
        GpufabError: the lock has no device for one of its rails.
    """
    wish = spec.profile_of(host).numa
    if wish is None:
        return None
    return want.NumaWant(
        ports=tuple(_port(lock, host, rail, position) for position, rail in enumerate(_rails(spec, host))),
        irq=wish.irq,
        irqbalance=True if wish.irq is not None else None,
        balancing=wish.balancing,
        zone_reclaim=wish.zone_reclaim,
        transparent_hugepages=wish.transparent_hugepages,
        hugepages=wish.hugepages,
        shared_subnet=_shared(wish.shared_subnet) if wish.shared_subnet is not None else None,
        max_read_request=wish.max_read_request,
        use=wish.use,
        set_acs=True if wish.acs in SETTING else None,
        nodes=wish.nodes,
    )


def acs_want(spec: FabricSpec, lock: Lock, host: Host) -> AcsWant | None:
    """How a host's kernel is to set ACS by itself; None where it is not.

    Raises:
        GpufabError: the lock has no device for one of its rails.
    """
    wish = spec.profile_of(host).numa
    if wish is None or wish.use is None or wish.acs != ARGUMENT:
        return None
    return AcsWant(wish.use, tuple(locked_port(lock, host, rail).pci for rail in _rails(spec, host)))


def _rails(spec: FabricSpec, host: Host) -> list[Rail]:
    return [rail for rail in spec.rails(host) if spec.networks[rail.network].transport in RDMA]


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
