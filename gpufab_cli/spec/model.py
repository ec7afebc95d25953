"""fabric.yml as types: what one file says about a fabric, checked down to its contradictions.

Only what holds for one value is said by types; what two values must agree on is in :mod:`.checks` and
:mod:`.addressing`, called from here so that one validation reports everything at its place.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, BeforeValidator, Field, model_validator

from gpufab_cli.module_utils.roce.want import Takeover
from gpufab_cli.module_utils.schema import Dscp, Priority, Range
from gpufab_cli.spec import addressing, checks, ranges
from gpufab_cli.spec.accept import Waiver, waiver_faults
from gpufab_cli.spec.base import Model, NotEmpty, Rails
from gpufab_cli.spec.bond import Bond
from gpufab_cli.spec.dvfs import Cpu, Gpus, Jobs
from gpufab_cli.spec.faults import raise_any
from gpufab_cli.spec.gpu_stack import GpuStackEntry
from gpufab_cli.spec.hooks import Hook, hook_faults
from gpufab_cli.spec.limits import Limits
from gpufab_cli.spec.mpi import Mpi
from gpufab_cli.spec.nccl_env import NcclEnv
from gpufab_cli.spec.numa import Numa
from gpufab_cli.spec.outputs import OutputName, output_faults
from gpufab_cli.spec.override import overridden
from gpufab_cli.spec.packages import Nccl, Rdma
from gpufab_cli.spec.restore import Restore
from gpufab_cli.spec.rollout import Rollout
from gpufab_cli.spec.sriov import FirmwareList, Kernel, SriovList
from gpufab_cli.spec.tuning import Buffers, Cable, Dcqcn
from gpufab_cli.spec.types import AbsolutePath, AddressRange, FilePath, HostRange, LoginName, Name, PciPattern

State = Literal["active", "maintenance", "absent"]
Transport = Literal["roce", "infiniband", "ethernet"]
Become = Literal["sudo", "none"]
Percent = Annotated[int, Range(1, 100)]


class LosslessClass(Model):
    """Traffic that must not be dropped: the DSCPs that mark it and the priority that PFC protects."""

    priority: Priority
    """The 802.1p priority that PFC pauses instead of dropping."""
    dscp: Annotated[tuple[Dscp, ...], NotEmpty]
    """The DSCPs that lead to it."""


class Cnp(Model):
    """How congestion notification packets are marked."""

    priority: Priority
    """A priority of their own: CNPs must pass where data is paused."""
    dscp: Dscp
    """The DSCP that marks them."""


class OtherDscp(Model):
    """Where every DSCP goes that no class names."""

    priority: Priority = 0
    """The priority of best effort."""


class RdmaCm(Model):
    """Defaults of connections made through RDMA-CM; their ToS follows from the first lossless class."""

    mode: Literal["RoCE v2", "IB/RoCE v1"] = "RoCE v2"
    """The RoCE version that connections start with."""


class Qos(Model):
    """One QoS profile. The first DSCP of the first lossless class marks traffic that asks for no class of its own."""

    lossless: Annotated[tuple[LosslessClass, ...], NotEmpty]
    """The lossless classes; the first is what traffic gets that asks for none."""
    cnp: Cnp | None = None
    """Congestion notification packets; needed where ecn is on."""
    other_dscp: OtherDscp = OtherDscp()
    """Where every DSCP goes that nothing here names."""
    extra_dscp: dict[Dscp, Priority] = Field(default_factory=dict)
    """Single DSCPs with a priority of their own that is neither lossless nor that of best effort, such as {46: 5}."""
    pfc: bool = True
    """Whether PFC is on for the lossless priorities; off everywhere if false."""
    ecn: bool = True
    """Whether ports react to congestion marks (RP) and notify of them (NP): DCQCN."""
    ets: dict[Priority, Percent] | None = None
    """Guaranteed share of each priority in percent, 100 in all; not managed if left out."""
    traffic_class: bool = False
    """Whether the first class's ToS is forced on every queue pair, whatever the application asks for."""
    rdma_cm: RdmaCm | None = RdmaCm()
    """Defaults of RDMA-CM connections; null leaves them alone."""
    dcqcn: Dcqcn | None = None
    """DCQCN parameters by their usual names, such as {rpg_ai_rate: 5}; those left out are not managed."""
    cable_m: Cable | None = None
    """Length of the longest cable in metres, from which drivers derive PFC headroom; not managed if left out."""
    buffers: Buffers | None = None
    """Receive buffers in place of those that the driver computes; not managed if left out."""

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        raise_any(checks.qos_faults(self))
        return self


class Addressing(Model):
    """The addresses of a network's ports. They are the site's own: gpufab checks them, nothing more."""

    ipv4: Annotated[str, AfterValidator(addressing.check_template)]
    """Such as 10.10.{rail}.{host}/24; {host} is the last number in the host's name, {rack} the one before it."""
    owner: Literal["none"] = "none"
    """Who sets the addresses: none of gpufab, so the site."""


class Network(Model):
    """A network of the fabric; each of its rails is one port of a host. QoS is set on ``roce`` networks only."""

    transport: Transport
    """What it carries: roce, infiniband, or ethernet without RDMA."""
    speed_gbps: Annotated[int, Range(1, 3200)] | None = None
    """Gb/s of each port; tells the ports of different networks apart when the lock is drafted."""
    mtu: Annotated[int, Range(576, 9978)] | None = None
    """MTU of the netdevs in bytes. The site sets it; gpufab checks it on roce networks."""
    rails: Annotated[int, Range(1, 64)] = 1
    """How many rails it has, numbered from 0."""
    qos: Name | None = None
    """The QoS profile that its ports follow; roce networks have one, others none."""
    addressing: Addressing | None = None
    """The addresses of its ports. The site sets them; gpufab checks them on roce networks."""

    @model_validator(mode="after")
    def _agrees(self) -> Self:
        raise_any(checks.network_faults(self))
        return self


class Ports(Model):
    """Ports of a profile: which rails of which network its hosts are on."""

    network: Name
    """The network."""
    rail: Rails
    """The rails of it: 0, 0-7, "0-3,6" or [0, 1]."""
    pci: PciPattern = "*"
    """Which PCI addresses may be these ports, with wildcards, such as *.1: read only when the lock is drafted."""
    bond: Bond | None = None
    """The bond that the site makes of two rails, as one RoCE LAG; not looked at if left out."""

    @property
    def rails(self) -> "tuple[Rail, ...]":
        """The ports one by one."""
        return tuple(Rail(self.network, number) for number in self.rail)


class Profile(Model):
    """A kind of host."""

    ports: tuple[Ports, ...] = ()
    """The ports of each host."""
    takeover: tuple[Takeover, ...] = ()
    """Foreign owners of settings that gpufab may relieve: dcbx, the NIC's firmware that follows the switch's DCBX."""

    rdma: Rdma | None = None
    """The RDMA stack that each host has installed; not managed if left out."""
    nccl: Nccl | None = None
    """NCCL as each host has it installed; not managed if left out."""
    gpus: Gpus | None = None
    """Clocks, power and modes of each host's GPUs; not managed if left out."""
    cpu: Cpu | None = None
    """Frequencies and idle states of each host's CPUs; not managed if left out."""
    jobs: Jobs | None = None
    """What Slurm jobs may ask for; no hooks if left out."""
    sriov: SriovList = ()
    """Virtual functions, for one network or a list for several; not managed if left out."""
    firmware: FirmwareList = ()
    """NIC firmware settings, for one network or a list for several; not managed if left out."""
    kernel: Kernel | None = None
    """Kernel arguments; not managed if left out."""
    gpu_stack: GpuStackEntry | None = None
    """GPU driver, Fabric Manager and GPUDirect RDMA: checked, never installed; not looked at if left out."""
    limits: Limits | None = None
    """Resource limits of logins and services; not managed if left out."""
    numa: Numa | None = None
    """Interrupts, memory and PCI Express next to GPUs and NICs; not managed if left out."""
    nccl_env: NcclEnv | None = None
    """What NCCL is told (/etc/nccl.conf); not managed if left out."""
    mpi: Mpi | None = None
    """What Open MPI and UCX are told; not managed if left out."""

    def rails_of(self, network: str, numbers: tuple[int, ...] | None) -> "tuple[Rail, ...]":
        """The ports of a host on a network, or those of them with the numbers."""
        return tuple(
            rail for rail in self.rails if rail.network == network and (numbers is None or rail.number in numbers)
        )

    @property
    def rails(self) -> "tuple[Rail, ...]":
        """The ports of a host, in the order of the file."""
        return tuple(rail for ports in self.ports for rail in ports.rails)


class HostEntry(Model):
    """One line of ``hosts``: a host, or a range of equal ones."""

    name: HostRange
    """The host's name, or a range such as gpu[001-032]."""
    profile: Name
    """The profile: what kind of host it is."""
    address: AddressRange | None = None
    """IP address or name to connect to, or a range of as many; the host's name if left out."""
    state: State = "active"
    """active; maintenance: reachable, but no role touches it; absent: only its name is kept."""
    leaf: Name | None = None
    """The leaf switch or rack that the hosts are on; gpufab launch puts the ranks of one leaf together."""
    override: dict[str, Any] | None = None
    """What is otherwise than in the profile, written as there; mappings are merged, null takes a value away."""

    @model_validator(mode="after")
    def _expands(self) -> Self:
        raise_any(checks.entry_faults(self))
        return self

    def hosts(self, entry: int) -> "tuple[Host, ...]":
        """The hosts the entry stands for; ``entry`` is its place in the file."""
        names = ranges.expand(self.name)
        addresses = ranges.expand(self.address) if self.address is not None else names
        return tuple(
            Host(name, address, self.profile, self.state, entry, self.leaf)
            for name, address in zip(names, addresses, strict=True)
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
    leaf: str | None = None


class Connection(Model):
    """How every host is reached, by Ansible and by the audit alike. What is not said is left to SSH's own settings."""

    user: LoginName | None = None
    """The user to log in as."""
    port: Annotated[int, Range(1, 65535)] | None = None
    """The port of the SSH server."""
    become: Become = "sudo"
    """How root is gained: sudo (sudo -n, it never asks) or none."""
    python: AbsolutePath = "/usr/bin/python3"
    """The Python on the nodes, 3.9 or newer. On a local file system: it also starts the restore before the network."""
    ssh_config: FilePath | None = None
    """The site's own ssh_config, relative to fabric.yml."""


class FabricSpec(Model):
    """A whole fabric.yml. Its ``hosts`` as written are ``host_entries``; :attr:`hosts` has them one by one."""

    name: Name
    """The fabric's name."""
    networks: Annotated[dict[Name, Network], NotEmpty]
    """The networks, by name."""
    qos: dict[Name, Qos] = Field(default_factory=dict)
    """QoS profiles of RoCE networks, by name."""
    profiles: Annotated[dict[Name, Profile], NotEmpty]
    """The kinds of hosts, by name."""
    host_entries: Annotated[tuple[HostEntry, ...], NotEmpty, BeforeValidator(checks.not_too_many), Field(alias="hosts")]
    """The hosts, one by one or in ranges."""
    connection: Connection = Connection()
    """How every host is reached, by Ansible and by the audit alike."""
    accept: tuple[Waiver, ...] = ()
    """Deviations that are lived with for a time; they stay visible in the audit."""
    restore: Restore = Restore()
    """How long a node that boots waits for its ports."""
    rollout: Rollout = Rollout()
    """In which portions gpufab apply goes over the fabric."""
    drain: Hook | None = None
    """The site's command that takes a host out of service, before an apply disturbs it."""
    resume: Hook | None = None
    """The site's command that gives a host back; one that an apply left worse is not given back."""
    outputs: Annotated[tuple[OutputName, ...], NotEmpty] = ("ansible",)
    """What gpufab render writes: ansible, the inventory that gpufab apply takes; that alone if left out."""

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
                *output_faults(self),
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
