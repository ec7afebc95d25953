"""Interrupts, memory and PCI Express of one host: what its profile wants, at its RDMA ports."""

from gpufab_cli.fabric.model import Resolved, ResolvedHost, ResolvedPort
from gpufab_cli.module_utils.kernel.want import AcsWant
from gpufab_cli.module_utils.numa import want
from gpufab_cli.spec.numa import SharedSubnet

ARGUMENT = "kernel-argument"
SETTING = ("set", ARGUMENT)


def numa_want(_: Resolved, host: ResolvedHost) -> want.NumaWant | None:
    """What the numa feature is told about one host; None where its profile says nothing of it."""
    wish = host.profile.numa
    if wish is None:
        return None
    return want.NumaWant(
        ports=tuple(_port(port, position) for position, port in enumerate(_rdma(host))),
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


def acs_want(host: ResolvedHost) -> AcsWant | None:
    """How a host's kernel is to set ACS by itself; None where it is not."""
    wish = host.profile.numa
    if wish is None or wish.use is None or wish.acs != ARGUMENT:
        return None
    return AcsWant(wish.use, tuple(port.pin.pci for port in _rdma(host)))


def _rdma(host: ResolvedHost) -> list[ResolvedPort]:
    return [port for port in host.ports.values() if port.rdma]


def _shared(wish: SharedSubnet) -> want.SharedSubnet:
    return want.SharedSubnet(wish.arp_ignore, wish.arp_announce, wish.rp_filter)


def _port(port: ResolvedPort, position: int) -> want.PortWant:
    return want.PortWant(
        rail=port.name,
        pci=port.pin.pci,
        position=position,
        mac=port.pin.mac,
        guid=port.pin.plain_guid,
        serial=port.pin.serial,
        psid=port.pin.psid,
    )
