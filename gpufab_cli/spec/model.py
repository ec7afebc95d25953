"""fabric.yml as types: what one file says about a fabric, checked down to its contradictions.

Only what holds for one value is said by types; what two values must agree on is in :mod:`.checks` and
:mod:`.addressing`, called from here so that one validation reports everything at its place.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from gpufab_cli.module_utils.schema import Dscp, Priority, Range
from gpufab_cli.spec import addressing, checks, ranges
from gpufab_cli.spec.accept import Waiver, waiver_faults
from gpufab_cli.spec.base import Model, NotEmpty
from gpufab_cli.spec.faults import raise_any
from gpufab_cli.spec.hooks import Hook, hook_faults
from gpufab_cli.spec.override import overridden
from gpufab_cli.spec.types import AbsolutePath, AddressRange, FilePath, HostRange, LoginName, Name

State = Literal["active", "maintenance", "absent"]
Transport = Literal["roce", "infiniband", "ethernet"]
Become = Literal["sudo", "none"]
Percent = Annotated[int, Range(1, 100)]


def _rails(value: Any) -> Any:
    if isinstance(value, int) and not isinstance(value, bool):
        return (value,)
    return ranges.numbers(value) if isinstance(value, str) else value


Rails = Annotated[tuple[Annotated[int, Range(0, 63)], ...], NotEmpty, BeforeValidator(_rails)]


class LosslessClass(Model):
    """Traffic that must not be dropped: the DSCPs that mark it and the priority that PFC protects."""

    priority: Priority
    dscp: Annotated[tuple[Dscp, ...], NotEmpty]


class Cnp(Model):
    """How congestion notification packets are marked."""

    priority: Priority
    dscp: Dscp


class OtherDscp(Model):
    """Where every DSCP goes that no class names."""

    priority: Priority = 0


class RdmaCm(Model):
    """Defaults of connections made through RDMA-CM; their ToS follows from the first lossless class."""

    mode: Literal["RoCE v2", "IB/RoCE v1"] = "RoCE v2"


class Qos(Model):
    """One QoS profile. The first DSCP of the first lossless class marks traffic that asks for no class of its own."""

    lossless: Annotated[tuple[LosslessClass, ...], NotEmpty]
    cnp: Cnp | None = None
    other_dscp: OtherDscp = OtherDscp()
    extra_dscp: dict[Dscp, Priority] = Field(default_factory=dict)
    pfc: bool = True
    ecn: bool = True
    ets: dict[Priority, Percent] | None = None
    traffic_class: bool = False
    rdma_cm: RdmaCm | None = RdmaCm()

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        raise_any(checks.qos_faults(self))
        return self


class Addressing(Model):
    """The addresses of a network's ports. They are the site's own: gpufab checks them, nothing more."""

    ipv4: Annotated[str, AfterValidator(addressing.check_template)]
    owner: Literal["none"] = "none"


class Network(Model):
    """A network of the fabric; each of its rails is one port of a host. Only ``roce`` networks are managed."""

    transport: Transport
    speed_gbps: Annotated[int, Range(1, 3200)] | None = None
    mtu: Annotated[int, Range(576, 9978)] | None = None
    rails: Annotated[int, Range(1, 64)] = 1
    qos: Name | None = None
    addressing: Addressing | None = None

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        raise_any(checks.network_faults(self))
        return self


class Ports(Model):
    """Ports of a profile: which rails of which network its hosts are on."""

    network: Name
    rail: Rails


class Profile(Model):
    """A kind of host."""

    ports: tuple[Ports, ...] = ()

    @property
    def rails(self) -> "tuple[Rail, ...]":
        """The ports of a host, in the order of the file."""
        return tuple(Rail(ports.network, number) for ports in self.ports for number in ports.rail)


class HostEntry(Model):
    """One line of ``hosts``: a host, or a range of equal ones."""

    name: HostRange
    profile: Name
    address: AddressRange | None = None
    state: State = "active"
    override: dict[str, Any] | None = None

    @model_validator(mode="after")
    def _expands(self) -> Self:
        raise_any(checks.entry_faults(self))
        return self

    def hosts(self, entry: int) -> "tuple[Host, ...]":
        """The hosts the entry stands for; ``entry`` is its place in the file."""
        names = ranges.expand(self.name)
        addresses = ranges.expand(self.address) if self.address is not None else names
        return tuple(
            Host(name, address, self.profile, self.state, entry) for name, address in zip(names, addresses, strict=True)
        )


@dataclass(frozen=True)
class Host:
    """One host of the fabric; its address is its name where the file gives none.

    What it wants is :meth:`FabricSpec.profile_of`: its ``profile`` is a name, and may be overridden for it.
    """

    name: str
    address: str
    profile: str
    state: State
    entry: int


class Connection(Model):
    """How every host is reached, by Ansible and by the audit alike. What is not said is left to SSH's own settings."""

    user: LoginName | None = None
    port: Annotated[int, Range(1, 65535)] | None = None
    become: Become = "sudo"
    python: AbsolutePath = "/usr/bin/python3"
    ssh_config: FilePath | None = None


class FabricSpec(Model):
    """A whole fabric.yml.

    Attributes:
        host_entries: ``hosts`` as written, with ranges; :attr:`hosts` has them one by one.
    """

    name: Name
    networks: Annotated[dict[Name, Network], NotEmpty]
    qos: dict[Name, Qos] = Field(default_factory=dict)
    profiles: Annotated[dict[Name, Profile], NotEmpty]
    host_entries: Annotated[tuple[HostEntry, ...], NotEmpty, Field(alias="hosts")]
    connection: Connection = Connection()
    accept: tuple[Waiver, ...] = ()
    drain: Hook | None = None
    resume: Hook | None = None

    @cached_property
    def hosts(self) -> tuple[Host, ...]:
        """Every host in the order of the file, those in maintenance and absent included."""
        return tuple(host for index, entry in enumerate(self.host_entries) for host in entry.hosts(index))

    def in_state(self, *states: State) -> tuple[Host, ...]:
        """The hosts in one of the states."""
        return tuple(host for host in self.hosts if host.state in states)

    @cached_property
    def own_profiles(self) -> tuple[Profile, ...]:
        """The profile of each entry of :attr:`host_entries`, its overrides in it."""
        return tuple(
            overridden(self.profiles[entry.profile], entry.override) if entry.override else self.profiles[entry.profile]
            for entry in self.host_entries
        )

    def profile_of(self, host: Host) -> Profile:
        """What is wanted of a host: its profile, and what its line says otherwise."""
        return self.own_profiles[host.entry]

    def rails(self, host: Host) -> "tuple[Rail, ...]":
        """The ports of a host, in the order of the file."""
        return self.profile_of(host).rails

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        raise_any(checks.reference_faults(self))
        raise_any(checks.override_faults(self))
        raise_any(
            [
                *checks.host_faults(self),
                *addressing.address_faults(self),
                *waiver_faults(self.accept, (host.name for host in self.hosts)),
                *hook_faults(self),
            ]
        )
        return self


@dataclass(frozen=True, order=True)
class Rail:
    """One rail of one network; written ``compute/3``."""

    network: str
    number: int

    def __str__(self) -> str:
        return f"{self.network}/{self.number}"
