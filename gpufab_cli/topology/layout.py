"""One node's topology, wherever it was read: from the node, a saved snapshot, a pasted matrix or an NCCL XML file."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from gpufab_cli.module_utils.devices import Devices, Gpu, Nic
from gpufab_cli.module_utils.topology.pairing import order
from gpufab_cli.module_utils.topology.relation import Relation, relation
from gpufab_cli.topology.roles import Rails, Role, rails, roles

Links = Mapping[tuple[str, str], str]
"""How two GPUs at these PCI addresses are connected by NVLink, as in ``NV18``; both orders are in it."""


INVENTED = 1 << 16
"""From here on NUMA nodes are none of the machine's: they keep apart what a matrix keeps apart without a name."""


@dataclass(frozen=True)
class Port:
    """One RDMA device, or a NIC function that has none.

    Attributes:
        rail: what the lock or the pairing calls it, such as compute/3; "" where it is no rail.
        role: None where the source does not say enough.
    """

    nic: Nic
    rdma: str
    role: Role | None
    rail: str = ""

    @property
    def name(self) -> str:
        """What people call it."""
        return self.rdma or (self.nic.netdevs[0].name if self.nic.netdevs else self.nic.pci)


@dataclass(frozen=True)
class Layout:
    """A node: its devices in the order in which ``nvidia-smi topo -m`` lists them, and who goes with whom.

    Attributes:
        name: the host, or the file that it was read from.
        links: the NVLinks between GPUs; None where the source does not know of them.
        cells: connections as the source gave them, by the names of both devices; else they follow from the PCI tree.
        addressed: whether PCI addresses are the node's own, not made up to stand for a matrix.
    """

    name: str
    devices: Devices
    ports: tuple[Port, ...]
    rails: Rails
    links: Links | None = None
    cells: Mapping[tuple[str, str], str] = field(default_factory=dict)
    addressed: bool = True

    @property
    def gpus(self) -> tuple[Gpu, ...]:
        """The GPUs, by index."""
        return self.devices.gpus

    @property
    def rdma_ports(self) -> tuple[Port, ...]:
        """What nvidia-smi counts as NIC0, NIC1 and so on."""
        return tuple(port for port in self.ports if port.rdma)

    @property
    def columns(self) -> dict[str, Gpu | Port]:
        """The devices of the matrix by their names in it."""
        found: dict[str, Gpu | Port] = {f"GPU{index}": gpu for index, gpu in enumerate(self.gpus)}
        return found | {f"NIC{index}": port for index, port in enumerate(self.rdma_ports)}

    def gpu_name(self, pci: str) -> str:
        """GPU3 of its address."""
        return next(f"GPU{index}" for index, gpu in enumerate(self.gpus) if gpu.pci == pci)

    def port_of(self, pci: str) -> Port:
        """The first port of a function."""
        return next(port for port in self.ports if port.nic.pci == pci)

    def cell(self, one: str, other: str) -> str:
        """How two devices of the matrix are connected, as nvidia-smi says it."""
        if (one, other) in self.cells:
            return self.cells[one, other]
        first, second = self.columns[one], self.columns[other]
        if one == other:
            return Relation.SELF.value
        if isinstance(first, Gpu) and isinstance(second, Gpu) and self.links is not None:
            link = self.links.get((first.pci, second.pci))
            if link:
                return link
        found = relation(_function(first), _function(second), self.devices.numa)
        # Two RDMA devices of one function are as near as two functions of one card.
        return Relation.PIX.value if found is Relation.SELF else found.value


def _function(device: Gpu | Port) -> Gpu | Nic:
    return device.nic if isinstance(device, Port) else device


def layout(name: str, devices: Devices, locked: Mapping[str, str] | None = None, links: Links | None = None) -> Layout:
    """The topology of a node.

    Args:
        name: what to call it.
        devices: its devices.
        locked: the ports that the lock pins on it, by PCI address, with their rails, such as ``compute/3``. Where none
            of them is there, the lock says nothing.
        links: the NVLinks between its GPUs, where they are known.
    """
    rail_names = {pci: rail for pci, rail in (locked or {}).items() if devices.nic(pci) is not None}
    networks = {pci: rail.partition("/")[0] for pci, rail in rail_names.items()}
    found = rails(devices, networks)
    kinds = roles(devices, networks, found)
    named = {**drafted(found), **rail_names}
    ports = [
        Port(nic, rdma, kinds[nic.pci], named.get(nic.pci, ""))
        for nic in sorted(devices.nics, key=lambda nic: order(nic.pci))
        if not nic.is_vf
        for rdma in [device.name for device in nic.rdma] or [""]
    ]
    return Layout(name, devices, tuple(ports), found, links)


def drafted(found: Rails) -> dict[str, str]:
    """Names of rails that no lock has named: their numbers, by the GPUs that they go with."""
    return {nic: f"rail {number}" for number, nic in enumerate(in_gpu_order(found))}


def in_gpu_order(found: Rails) -> Iterable[str]:
    """The rails in the order of their GPUs."""
    first: dict[str, int] = {}
    for item in (*found.pairing.pairs, *found.pairing.remote):
        first[item.nic] = min(order(item.gpu), first.get(item.nic, order(item.gpu)))
    return sorted(found.ports, key=lambda nic: (first.get(nic, order(nic)), order(nic)))
