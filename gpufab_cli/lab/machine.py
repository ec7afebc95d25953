"""Machine types: what a node is made of, read from the YAML profiles beside this module."""

import hashlib
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml

from gpufab_cli.lab import toolbox
from gpufab_cli.lab.errors import LabError
from gpufab_cli.lab.parts import Cpu, Gpu, IdleState

PROFILES = Path(__file__).parent / "machines"


@dataclass(frozen=True)
class Numa:
    """One NUMA node: its CPU list as the kernel prints it, and its memory.

    Attributes:
        id: its number, where it is not its place among the others.
        socket: the processor that its CPUs are in; its number where nothing else is said.
        distances: from it to each node, in their order; those of a two-socket machine where nothing is said.
    """

    cpus: str
    memory_gib: int
    id: int
    socket: int
    distances: tuple[int, ...] = ()


@dataclass(frozen=True)
class Nic:
    """The network adapter all ports of a machine share; identifiers are strings as sysfs prints them."""

    vendor: str
    device: str
    subsystem_vendor: str
    subsystem_device: str
    driver: str
    hca_type: str
    psid: str
    part_number: str
    firmware: str
    speed_gbps: int
    rate: str
    pcie_speed: str
    pcie_width: int
    total_vfs: int
    buffer_bytes: int
    link_layer: str = "Ethernet"


@dataclass(frozen=True, kw_only=True)
class Place:
    """A PCI function and the bridges above it, root port first; without any it is on the root bus itself.

    Attributes:
        numa: the NUMA node that the firmware says it is near to; -1 where it says none.
    """

    pci: str
    numa: int
    behind: tuple[str, ...]

    @property
    def root(self) -> str:
        """The root bus that it is below."""
        return (*self.behind, self.pci)[0].rsplit(":", 1)[0]

    @property
    def sysfs(self) -> str:
        """Its directory below /sys/devices."""
        return "/".join([f"pci{self.root}", *self.behind, self.pci])


@dataclass(frozen=True, kw_only=True)
class GpuPlace(Place):
    """A GPU; ``memory_node`` is the NUMA node that its memory is, -1 where it is none."""

    memory_node: int = -1


@dataclass(frozen=True, kw_only=True)
class Manager(Place):
    """A function of the GPU baseboard that manages its NVSwitches: an InfiniBand device without netdev or cable."""

    rdma: str


@dataclass(frozen=True, kw_only=True)
class PortPlace(Place):
    """A NIC port: one PCI function with one netdev and one RDMA device; its rail is its position.

    Attributes:
        rdma: its RDMA device; "" where the port it is bonded with has that of both.
        bond: the bond that it is a port of, if it is.
        vlan: the VLAN that has its address, if one has.
        link_layer: where it differs from that of the machine's other ports.
    """

    netdev: str
    rdma: str
    bond: str = ""
    vlan: int = 0
    link_layer: str = ""

    @property
    def holder(self) -> str:
        """The interface that has its addresses."""
        return self.bond or (f"{self.netdev}.{self.vlan}" if self.vlan else self.netdev)


@dataclass(frozen=True)
class Stack:
    """What software a machine's NICs come with.

    Attributes:
        control: the driver's congestion control: vendor (sysfs), inbox (debugfs), or bnxt (configfs).
        release: what `ofed_info` prints; "" without the vendor's stack.
        tools: vendor tools that are installed besides the usual ones.
        without: usual tools that are not.
    """

    control: str = "vendor"
    release: str = ""
    tools: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


@dataclass(frozen=True)
class Machine:
    """A machine type, e.g. hgx-h100."""

    name: str
    description: str
    vendor: str
    product: str
    numa: tuple[Numa, ...]
    nic: Nic
    gpu: Gpu
    ports: tuple[PortPlace, ...]
    gpus: tuple[GpuPlace, ...]
    managers: tuple[Manager, ...] = ()
    nvswitches: tuple[Place, ...] = ()
    stack: Stack = Stack()
    cpu: Cpu = field(default_factory=Cpu)

    def cpus_near(self, numa: int) -> str:
        """The CPUs of a NUMA node; all of them for a device of none."""
        return ",".join(node.cpus for node in self.numa if node.cpus and numa in (node.id, -1))

    @property
    def ethernet(self) -> bool:
        """Whether its ports are Ethernet; else InfiniBand."""
        return self.nic.link_layer == "Ethernet"

    def is_ethernet(self, port: PortPlace) -> bool:
        """Whether a port is Ethernet; else InfiniBand."""
        return (port.link_layer or self.nic.link_layer) == "Ethernet"

    @property
    def has_fabric(self) -> bool:
        """Whether NVSwitches join its GPUs, which then need Fabric Manager."""
        return bool(self.nvswitches or self.managers)

    def has_tool(self, tool: str) -> bool:
        """Whether a tool is installed."""
        if tool == toolbox.FABRIC_MANAGER:
            return self.has_fabric
        return tool in self.stack.tools or (tool not in toolbox.VENDOR and tool not in self.stack.without)

    def rail(self, selector: str) -> int:
        """Finds a port by rail number or netdev name.

        Raises:
            LabError: No port answers to the selector.
        """
        for rail, port in enumerate(self.ports):
            if selector in (str(rail), port.netdev):
                return rail
        raise LabError(f"no port {selector!r}", hint=f"a rail 0-{len(self.ports) - 1} or a netdev name")


def names() -> list[str]:
    """Machine types that have a profile."""
    return sorted(path.stem for path in PROFILES.glob("*.yml"))


@cache
def load(name: str) -> Machine:
    """Reads the profile of a machine type.

    Raises:
        LabError: There is no such profile.
    """
    path = PROFILES / f"{name}.yml"
    if not path.is_file():
        raise LabError(f"no machine type {name!r}", hint=f"known: {', '.join(names())}")
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # libyaml where it is built in: a tenth of the time
    return _parse(name, yaml.load(path.read_text(), Loader=loader))  # noqa: S506 (both are safe)


def _parse(name: str, raw: dict[str, Any]) -> Machine:
    return Machine(
        name=name,
        description=raw["description"],
        vendor=raw["vendor"],
        product=raw["product"],
        numa=tuple(_numa(index, numa) for index, numa in enumerate(raw["numa"])),
        nic=Nic(**raw["nic"]),
        gpu=Gpu(**{name: _frozen(value) for name, value in raw["gpu"].items()}),
        ports=tuple(PortPlace(**_with_path(port)) for port in raw["ports"]),
        gpus=tuple(GpuPlace(**_with_path(place)) for place in raw["gpus"]),
        managers=tuple(Manager(**_with_path(place)) for place in raw.get("managers", ())),
        nvswitches=tuple(Place(**_with_path(place)) for place in raw.get("nvswitches", ())),
        stack=Stack(**{name: _frozen(value) for name, value in raw.get("stack", {}).items()}),
        cpu=_cpu(raw.get("cpu", {})),
    )


def _numa(index: int, raw: dict[str, Any]) -> Numa:
    number = raw.get("id", index)
    return Numa(**{"id": number, "socket": number, **{name: _frozen(value) for name, value in raw.items()}})


def _cpu(raw: dict[str, Any]) -> Cpu:
    idle = {"idle": tuple(IdleState(**state) for state in raw["idle"])} if "idle" in raw else {}
    return Cpu(**{**raw, **idle})


def _frozen(value: Any) -> Any:
    return tuple(value) if isinstance(value, list) else value


def _with_path(raw: dict[str, Any]) -> dict[str, Any]:
    return {**raw, "behind": tuple(raw["behind"])}


@dataclass(frozen=True)
class Identity:
    """Numbers that differ from node to node; derived from the name, so that a rebuilt node keeps them."""

    node: str

    def _digest(self, *words: object) -> str:
        return hashlib.sha256("/".join(map(str, (self.node, *words))).encode()).hexdigest()

    def mac(self, rail: int) -> str:
        """A locally administered unicast MAC."""
        digest = self._digest("mac", rail)
        return ":".join(["02", *(digest[i : i + 2] for i in range(0, 10, 2))])

    def guid(self, rail: int) -> str:
        """The node GUID as sysfs prints it: the MAC as EUI-64 with the middle bytes 03 00."""
        octets = self.mac(rail).split(":")
        words = [*octets[:3], "03", "00", *octets[3:]]
        return ":".join(words[i] + words[i + 1] for i in range(0, 8, 2))

    def serial(self, kind: str, index: int = 0) -> str:
        """A serial number of twelve characters."""
        return f"{kind}{int(self._digest(kind, index)[:14], 16) % 10**10:010d}"

    def gpu_uuid(self, index: int) -> str:
        """A GPU UUID as nvidia-smi prints it."""
        digest = self._digest("gpu", index)
        return "GPU-" + "-".join((digest[:8], digest[8:12], digest[12:16], digest[16:20], digest[20:32]))
