"""A fabric as it is resolved: fabric.yml and its lock in one, host by host and port by port."""

from collections.abc import Mapping
from dataclasses import dataclass

from gpufab_cli.errors import GpufabError, NotLockedError
from gpufab_cli.module_utils.identity import plain_guid
from gpufab_cli.spec.bond import Bond
from gpufab_cli.spec.model import FabricSpec, Profile, Rail, State, Transport


@dataclass(frozen=True, slots=True)
class Pin:
    """The device that a port is, as the lock holds it. What it would not tell when it was locked is None.

    Attributes:
        pci: PCI address.
        mac: MAC address of an Ethernet port.
        guid: node GUID of the RDMA device, as the lock writes it.
        serial: serial number of the card.
        psid: what the vendor calls the kind of card.
    """

    pci: str
    mac: str | None = None
    guid: str | None = None
    serial: str | None = None
    psid: str | None = None

    @property
    def plain_guid(self) -> str | None:
        """The GUID as the node core compares it."""
        return plain_guid(self.guid) if self.guid is not None else None


@dataclass(frozen=True, slots=True)
class ResolvedPort:
    """One port of one host.

    Attributes:
        rail: the network, and the number of the rail in it.
        address: with its prefix length; the bond's, where the port is in one. None where the network has no addressing.
        mtu: in bytes; None where nothing is said of it, as for all that follow.
        speed_gbps: in Gb/s.
        qos: name of the QoS profile.
        bond: the bond that the site has put the port into.
    """

    pin: Pin
    rail: Rail
    transport: Transport
    address: str | None = None
    mtu: int | None = None
    speed_gbps: int | None = None
    qos: str | None = None
    bond: Bond | None = None

    @property
    def name(self) -> str:
        """How the port is called within its host, such as compute/3."""
        return str(self.rail)

    @property
    def rdma(self) -> bool:
        """Whether it carries RDMA."""
        return self.transport in ("roce", "infiniband")


@dataclass(frozen=True)
class ResolvedHost:
    """One host.

    Attributes:
        kind: name of its profile.
        profile: what is wanted of it: its profile, and what its line says otherwise.
        overridden: whether its line says anything otherwise.
        leaf: the leaf switch or rack that it is on.
        ports: those that the lock has a device for, by name, in the order of the file.
        gpus: PCI addresses, in the order of their numbers.
    """

    name: str
    address: str
    kind: str
    profile: Profile
    state: State
    leaf: str | None
    overridden: bool
    ports: Mapping[str, ResolvedPort]
    gpus: tuple[str, ...]

    def port(self, rail: Rail) -> ResolvedPort:
        """The port of a rail.

        Raises:
            KeyError: the lock has no device for it.
        """
        return self.ports[str(rail)]


@dataclass(frozen=True)
class Resolved:
    """A whole fabric.

    Attributes:
        spec: what fabric.yml says.
        hosts: active ones and those in maintenance, by name, in the order of the file; absent ones are left out.
        unlocked: the active hosts that the lock lacks, or lacks a port of. Nobody can say what is wanted of them.
        wrong: the active hosts whose devices contradict what they are to be.
    """

    spec: FabricSpec
    hosts: Mapping[str, ResolvedHost]
    unlocked: Mapping[str, NotLockedError]
    wrong: Mapping[str, GpufabError]

    @property
    def active(self) -> tuple[ResolvedHost, ...]:
        """The hosts in service."""
        return tuple(host for host in self.hosts.values() if host.state == "active")
