"""The rails that NCCL and MPI use on one host, and the class of their traffic."""

from gpufab_cli.fabric.model import Resolved, ResolvedHost, ResolvedPort
from gpufab_cli.intent.qos import traffic_class
from gpufab_cli.module_utils.rails import ClassWant, RailWant
from gpufab_cli.spec.rails import RailUser, rails_of


def rail_wants(fabric: Resolved, host: ResolvedHost, user: RailUser) -> tuple[RailWant, ...]:
    """The ports, in the order of rails."""
    return tuple(_rail(host.port(rail)) for rail in rails_of(fabric.spec, host.profile, user))


def class_want(fabric: Resolved, host: ResolvedHost, user: RailUser) -> ClassWant | None:
    """The first lossless class of the network's QoS profile; None where it carries no RoCE."""
    rails = rails_of(fabric.spec, host.profile, user)
    name = host.port(rails[0]).qos if rails else None
    if name is None:
        return None
    qos = fabric.spec.qos[name]
    return ClassWant(traffic_class(qos.lossless[0].dscp[0], ecn=qos.ecn), qos.lossless[0].priority, qos.pfc)


def socket_ports(host: ResolvedHost, user: RailUser) -> tuple[str, ...] | None:
    """PCI addresses of the ports for start-up and sockets; None where no network is told."""
    if user.socket is None:
        return None
    return tuple(host.port(rail).pin.pci for rail in host.profile.rails_of(user.socket, None))


def _rail(port: ResolvedPort) -> RailWant:
    return RailWant(
        rail=port.name,
        pci=port.pin.pci,
        transport="roce" if port.transport == "roce" else "infiniband",
        mac=port.pin.mac,
        guid=port.pin.plain_guid,
        serial=port.pin.serial,
        psid=port.pin.psid,
        address=port.address,
    )
