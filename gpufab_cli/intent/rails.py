"""The rails that NCCL and MPI use on one host, at the devices that the lock pins, and the class of their traffic."""

from gpufab_cli.intent.qos import traffic_class
from gpufab_cli.module_utils.identity import plain_guid
from gpufab_cli.module_utils.rails import ClassWant, RailWant
from gpufab_cli.spec.addressing import port_address
from gpufab_cli.spec.lock import Lock, locked_port
from gpufab_cli.spec.model import FabricSpec, Host, Rail
from gpufab_cli.spec.rails import RailUser, rails_of


def rail_wants(spec: FabricSpec, lock: Lock, host: Host, user: RailUser) -> tuple[RailWant, ...]:
    """The ports, in the order of rails.

    Raises:
        GpufabError: the lock has no device for one of them.
    """
    return tuple(_rail(spec, lock, host, rail) for rail in rails_of(spec, spec.profile_of(host), user))


def class_want(spec: FabricSpec, host: Host, user: RailUser) -> ClassWant | None:
    """The first lossless class of the network's QoS profile; None where it carries no RoCE."""
    rails = rails_of(spec, spec.profile_of(host), user)
    name = spec.networks[rails[0].network].qos if rails else None
    if name is None:
        return None
    qos = spec.qos[name]
    return ClassWant(traffic_class(qos.lossless[0].dscp[0], ecn=qos.ecn), qos.lossless[0].priority, qos.pfc)


def socket_ports(spec: FabricSpec, lock: Lock, host: Host, user: RailUser) -> tuple[str, ...] | None:
    """PCI addresses of the ports for start-up and sockets; None where no network is told."""
    if user.socket is None:
        return None
    return tuple(locked_port(lock, host, rail).pci for rail in spec.profile_of(host).rails_of(user.socket, None))


def _rail(spec: FabricSpec, lock: Lock, host: Host, rail: Rail) -> RailWant:
    device = locked_port(lock, host, rail)
    address = port_address(spec, host, rail)
    return RailWant(
        rail=str(rail),
        pci=device.pci,
        transport="roce" if spec.networks[rail.network].transport == "roce" else "infiniband",
        mac=device.mac,
        guid=plain_guid(device.guid) if device.guid else None,
        serial=device.serial,
        psid=device.psid,
        address=str(address) if address is not None else None,
    )
