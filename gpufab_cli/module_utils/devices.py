"""The devices of a node, found once a snapshot: NIC functions with their netdevs and RDMA devices, and GPUs.

Devices are identified by PCI address, driver and class, never by a name such as ``mlx5_0`` or ``ens6f0``: udev, OFED
and rdma-core all rename. Sources: the kernel's sysfs ABI (Documentation/ABI/testing/sysfs-class-net,
sysfs-class-infiniband, sysfs-bus-pci) and ``devlink dev info``.
"""

import re
from dataclasses import dataclass
from typing import Any, Dict, Iterator, Mapping, Optional, Tuple, Union

from .change import ABSENT, Absent, Unknown
from .host import Reader
from .management import addresses, carried
from .schema import PciAddress
from .texts import natural, parse_json
from .topology import numa
from .topology.numa import NOT_KNOWN, Numa

CLASS_GPU = ("0x030000", "0x030200")
NVIDIA = "0x10de"
PCI_DEVICES = "/sys/bus/pci/devices"
NET = "/sys/class/net"
INFINIBAND = "/sys/class/infiniband"

OptionalText = Union[str, Absent, Unknown]


@dataclass(frozen=True)
class Upper:
    """An interface stacked on a port, such as a VLAN or a bond, directly or through another, with its addresses."""

    name: str
    mtu: int
    bond: bool
    addresses: Union[Tuple[str, ...], Unknown]


@dataclass(frozen=True)
class Netdev:
    """A network interface of a NIC function, with its IP addresses as ADDRESS/PREFIX.

    ``mac`` is the port's own, also while a bond gives all its ports one. ``carries`` says what the node itself
    depends on here. ``uppers`` are the interfaces stacked on it, nearest first.
    """

    name: str
    mac: str
    mtu: int
    operstate: str
    speed_mbps: Union[int, Unknown]
    addresses: Union[Tuple[str, ...], Unknown]
    carries: Union[Tuple[str, ...], Unknown]
    uppers: Tuple[Upper, ...] = ()

    @property
    def bond(self) -> Optional[Upper]:
        """The bond that the interface is a port of."""
        return next((upper for upper in self.uppers if upper.bond), None)


@dataclass(frozen=True)
class RdmaDevice:
    """An RDMA device of a NIC function, seen at port 1. ``state`` and ``rate`` are as sysfs prints them."""

    name: str
    node_guid: str
    link_layer: str
    state: str
    rate: str


@dataclass(frozen=True)
class Nic:
    """One PCI function that has a netdev or an RDMA device. ``numa_node`` is -1 when the firmware does not say.

    ``above`` are its root bus and the bridges above it, outermost first; () where they are not known.
    ``nvswitch``: it belongs to the GPU baseboard and manages its NVSwitches. It is no port of any network.
    """

    pci: PciAddress
    driver: str
    vendor: str
    device: str
    numa_node: int
    is_vf: bool
    serial: OptionalText
    psid: OptionalText
    fw_version: OptionalText
    netdevs: Tuple[Netdev, ...] = ()
    rdma: Tuple[RdmaDevice, ...] = ()
    nvswitch: bool = False
    above: Tuple[str, ...] = ()

    @property
    def netdev(self) -> Optional[Netdev]:
        """The function's one netdev; None when it has none or several."""
        return self.netdevs[0] if len(self.netdevs) == 1 else None


@dataclass(frozen=True)
class Gpu:
    """One GPU. ``above`` are its root bus and the bridges above it, outermost first; () where they are not known."""

    pci: PciAddress
    vendor: str
    device: str
    driver: str
    numa_node: int
    above: Tuple[str, ...] = ()


@dataclass(frozen=True)
class Devices:
    """Every device found, by PCI address in ascending order, and the NUMA nodes that they are on."""

    nics: Tuple[Nic, ...] = ()
    gpus: Tuple[Gpu, ...] = ()
    numa: Numa = NOT_KNOWN

    def nic(self, pci: str) -> Optional[Nic]:
        """The NIC function at a PCI address."""
        return next((nic for nic in self.nics if nic.pci == pci), None)

    def nic_by_mac(self, mac: str) -> Optional[Nic]:
        """The NIC function that has a netdev of this MAC address."""
        return next((nic for nic in self.nics if any(dev.mac == mac for dev in nic.netdevs)), None)

    def nic_by_netdev(self, name: str) -> Optional[Nic]:
        """The NIC function that a netdev belongs to; of a VLAN or bond, the first one below it."""
        own = (nic for nic in self.nics if any(dev.name == name for dev in nic.netdevs))
        below = (nic for nic in self.nics if any(upper.name == name for dev in nic.netdevs for upper in dev.uppers))
        return next(own, None) or next(below, None)

    def bonded_with(self, nic: Nic) -> Tuple[Nic, ...]:
        """The other NIC functions whose ports are in the same bond."""
        bond = nic.netdev.bond if nic.netdev is not None else None
        if bond is None:
            return ()
        return tuple(
            other
            for other in self.nics
            if other.pci != nic.pci
            and any(dev.bond is not None and dev.bond.name == bond.name for dev in other.netdevs)
        )


def gather(host: Reader) -> Devices:
    """Find every device of the node. A node without any gives empty lists, not an error."""
    functions = host.names(PCI_DEVICES)
    if not isinstance(functions, tuple):
        return Devices()
    interfaces, info = addresses(host), _devlink_info(host)
    uses = _Uses(interfaces, carried(host, interfaces))
    nics, found = [], []
    for pci in functions:
        folder = f"{PCI_DEVICES}/{pci}"
        if host.exists(f"{folder}/net") or host.exists(f"{folder}/infiniband"):
            nics.append(_nic(host, pci, uses, info))
        elif _is_gpu(host, folder):
            found.append(_gpu(host, pci))
    return Devices(tuple(nics), tuple(found), numa.gather(host))


def renamed(host: Reader, devices: Devices) -> bool:
    """Whether a port has other netdevs or RDMA devices by now than it had when the devices were found."""
    return any(
        _list(host, f"{PCI_DEVICES}/{nic.pci}/{kind}") != tuple(device.name for device in found)
        for nic in devices.nics
        if not nic.is_vf
        for kind, found in (("net", nic.netdevs), ("infiniband", nic.rdma))
    )


@dataclass(frozen=True)
class _Uses:
    """What is known of all netdevs at once, by name."""

    addresses: Union[Mapping[str, Tuple[str, ...]], Unknown]
    carries: Union[Mapping[str, Tuple[str, ...]], Unknown]


def _nic(host: Reader, pci: str, uses: _Uses, info: Union[Mapping[str, Any], Unknown]) -> Nic:
    folder = f"{PCI_DEVICES}/{pci}"
    identity = _identity(info, pci)
    rdma = tuple(_rdma(host, name) for name in _list(host, f"{folder}/infiniband"))
    return Nic(
        pci=pci,
        driver=_driver(host, pci),
        vendor=_text(host, f"{folder}/vendor"),
        device=_text(host, f"{folder}/device"),
        numa_node=numa_node(host, pci),
        is_vf=host.exists(f"{folder}/physfn"),
        netdevs=tuple(_netdev(host, name, uses) for name in _list(host, f"{folder}/net")),
        rdma=rdma,
        nvswitch=any(device.link_layer == "InfiniBand" for device in rdma) and _manages_nvswitch(host, folder),
        above=above(host, pci),
        **identity,
    )


def _manages_nvswitch(host: Reader, folder: str) -> bool:
    """Whether the function's vital product data say so, as Fabric Manager looks for it too; only root may read them."""
    data = host.read_bytes(f"{folder}/vpd")
    return isinstance(data, bytes) and b"SW_MNG" in data


def gpus(host: Reader) -> Tuple[Gpu, ...]:
    """The GPUs alone. Nothing but sysfs is read, which needs no root and takes no time."""
    functions = host.names(PCI_DEVICES)
    found = functions if isinstance(functions, tuple) else ()
    return tuple(_gpu(host, pci) for pci in found if _is_gpu(host, f"{PCI_DEVICES}/{pci}"))


def numa_node(host: Reader, pci: str) -> int:
    """The NUMA node of a function; -1 where the firmware does not say."""
    return _number(host.read(f"{PCI_DEVICES}/{pci}/numa_node"), -1)


def _is_gpu(host: Reader, folder: str) -> bool:
    return _text(host, f"{folder}/class") in CLASS_GPU and _text(host, f"{folder}/vendor") == NVIDIA


def _gpu(host: Reader, pci: str) -> Gpu:
    folder = f"{PCI_DEVICES}/{pci}"
    return Gpu(
        pci=pci,
        vendor=_text(host, f"{folder}/vendor"),
        device=_text(host, f"{folder}/device"),
        driver=_driver(host, pci),
        numa_node=numa_node(host, pci),
        above=above(host, pci),
    )


def above(host: Reader, pci: str) -> Tuple[str, ...]:
    """What lies between a function and the CPU, as the device tree nests it; also where firmware puts it deeper."""
    target = host.link(f"{PCI_DEVICES}/{pci}")
    parts = target.split("/") if isinstance(target, str) else []
    roots = [number for number, part in enumerate(parts) if re.fullmatch(r"pci[0-9a-f]{4,}:[0-9a-f]{2}", part)]
    return tuple(parts[roots[0] : -1]) if roots else ()


def _netdev(host: Reader, name: str, uses: _Uses) -> Netdev:
    folder = f"{NET}/{name}"
    speed = natural(host.read(f"{folder}/speed"))
    return Netdev(
        name=name,
        mac=(_text(host, f"{folder}/bonding_slave/perm_hwaddr") or _text(host, f"{folder}/address")).lower(),
        mtu=_number(host.read(f"{folder}/mtu"), 0),
        operstate=_text(host, f"{folder}/operstate"),
        # A link that is down reads as -1 or EINVAL.
        speed_mbps=Unknown("link down or no speed") if speed is None else speed,
        addresses=_of(uses.addresses, name),
        carries=_of(uses.carries, name),
        uppers=tuple(_uppers(host, name, uses)),
    )


def _uppers(host: Reader, name: str, uses: _Uses) -> Iterator[Upper]:
    """The interfaces above one, through ``upper_NAME`` links, each once."""
    queue, seen = [name], {name}
    while queue:
        links = _list(host, f"{NET}/{queue.pop(0)}")
        for upper in (link[len("upper_") :] for link in links if link.startswith("upper_")):
            if upper not in seen:
                seen.add(upper)
                queue.append(upper)
                folder = f"{NET}/{upper}"
                mtu, bond = _number(host.read(f"{folder}/mtu"), 0), host.exists(f"{folder}/bonding")
                yield Upper(upper, mtu, bond, _of(uses.addresses, upper))


def _of(table: Union[Mapping[str, Tuple[str, ...]], Unknown], name: str) -> Union[Tuple[str, ...], Unknown]:
    return table if isinstance(table, Unknown) else table.get(name, ())


def _rdma(host: Reader, name: str) -> RdmaDevice:
    port = f"{INFINIBAND}/{name}/ports/1"
    return RdmaDevice(
        name=name,
        node_guid=_text(host, f"{INFINIBAND}/{name}/node_guid"),
        link_layer=_text(host, f"{port}/link_layer"),
        state=_text(host, f"{port}/state").partition(": ")[2],
        rate=_text(host, f"{port}/rate"),
    )


def _devlink_info(host: Reader) -> Union[Dict[str, Any], Unknown]:
    output = host.query("devlink", "-j", "dev", "info")
    if isinstance(output, Unknown):
        return output
    if output.rc != 0:
        return Unknown(f"devlink dev info: {output.error}")
    try:
        info = parse_json(output.stdout)["info"]
    except (ValueError, KeyError, TypeError):
        return Unknown("devlink dev info: printed what no known release prints")
    return info if isinstance(info, dict) else Unknown("devlink dev info: no mapping of devices")


def _identity(info: Union[Mapping[str, Any], Unknown], pci: str) -> Dict[str, OptionalText]:
    """Serial, PSID and firmware version of the card, as ``devlink dev info`` tells them."""
    if isinstance(info, Unknown):
        return {"serial": info, "psid": info, "fw_version": info}
    entry = info.get(f"pci/{pci}", {})
    if not isinstance(entry, dict):
        return dict.fromkeys(("serial", "psid", "fw_version"), Unknown(f"devlink dev info: {pci} is no mapping"))
    return {
        "serial": _word(entry.get("serial_number")),
        "psid": _word(_nested(entry, "versions", "fixed", "fw.psid")),
        "fw_version": _word(_nested(entry, "versions", "running", "fw.version")),
    }


def _nested(data: Any, *keys: str) -> Any:
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _word(value: Any) -> Union[str, Absent]:
    return value if isinstance(value, str) and value else ABSENT


def _driver(host: Reader, pci: str) -> str:
    target = host.link(f"{PCI_DEVICES}/{pci}/driver")
    return target.rpartition("/")[2] if isinstance(target, str) else ""


def _list(host: Reader, path: str) -> Tuple[str, ...]:
    names = host.names(path)
    return names if isinstance(names, tuple) else ()


def _text(host: Reader, path: str) -> str:
    value = host.read(path)
    return value if isinstance(value, str) else ""


def _number(value: Union[str, Absent, Unknown], default: int) -> int:
    return int(value) if isinstance(value, str) and re.fullmatch("-?[0-9]{1,10}", value) else default
