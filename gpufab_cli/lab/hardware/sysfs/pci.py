"""PCI functions: bridges, NIC ports and GPUs, nested as the bus nests them."""

from functools import partial

from gpufab_cli.lab.hardware import config_space
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.sysfs.system import cpu_mask
from gpufab_cli.lab.hardware.sysfs.tree import Binary, Tree
from gpufab_cli.lab.machine import Nic, Place
from gpufab_cli.lab.parts import Gpu

_ROOT_PORT = ("0x8086", "0x352a", "0x060400")  # Intel Sapphire Rapids root port
_SWITCH = ("0x1000", "0xc030", "0x060400")  # Broadcom PEX890xx
_MANAGES = "NVIDIA ConnectX-7 SW_MNG"  # what Fabric Manager looks for in the vital product data
_NVSWITCH = ("0x10de", "0x22a3", "0x068000")  # of the third generation
_BRIDGE_KINDS = ("0x060400",)
_ROOT_PARTS = ("", "devices", "pciDDDD:BB")
_ETHERNET, _INFINIBAND, _DISPLAY = "0x020000", "0x020700", "0x030200"


def add(tree: Tree, hw: Hardware) -> None:
    """Adds all PCI functions of the machine."""
    machine = hw.machine
    for place in (*machine.ports, *machine.gpus, *machine.managers, *machine.nvswitches):
        _bridges(tree, hw, place)
    for port in machine.ports:
        _function(tree, hw, port, machine.nic, _ETHERNET if machine.is_ethernet(port) else _INFINIBAND)
    for manager in machine.managers:
        _function(tree, hw, manager, machine.nic, _INFINIBAND)
        tree.text(f"/devices/{manager.sysfs}/vpd", _MANAGES, mode=0o600)
    for gpu in machine.gpus:
        _function(tree, hw, gpu, machine.gpu, _DISPLAY)
    for place in machine.nvswitches:
        path = f"/devices/{place.sysfs}"
        _common(tree, hw, path, place.numa, _NVSWITCH)
        _driver(tree, path, place.pci, "nvidia-nvswitch")
        tree.text(
            f"{path}/uevent", f"DRIVER=nvidia-nvswitch\nPCI_CLASS=68000\nPCI_ID=10DE:22A3\nPCI_SLOT_NAME={place.pci}"
        )


def _common(tree: Tree, hw: Hardware, path: str, numa: int, ids: tuple[str, str, str]) -> None:
    """What every function has; `ids` are vendor, device and class."""
    pci = path.rsplit("/", 1)[1]
    tree.link(f"/bus/pci/devices/{pci}", path)
    tree.link(f"{path}/subsystem", "/bus/pci")
    for name, value in zip(("vendor", "device", "class", "numa_node"), (*ids, numa), strict=True):
        tree.text(f"{path}/{name}", value)
    near = hw.machine.cpus_near(numa)
    tree.text(f"{path}/local_cpulist", near)
    tree.text(f"{path}/local_cpus", cpu_mask(near))
    tree.text(f"{path}/enable", 1)
    kind = config_space.ENDPOINT if ids[2] not in _BRIDGE_KINDS else _port_kind(path)
    _config(tree, hw, path, ids, kind)


def _port_kind(path: str) -> int:
    """A bridge below the root is a root port; below that upstream and downstream ports of switches take turns."""
    depth = path.count("/") - len(_ROOT_PARTS)
    return config_space.ROOT_PORT if depth == 0 else (config_space.UPSTREAM, config_space.DOWNSTREAM)[(depth - 1) % 2]


def _config(tree: Tree, hw: Hardware, path: str, ids: tuple[str, str, str], kind: int) -> None:
    pci = path.rsplit("/", 1)[1]
    read = partial(config_space.read, hw, pci, ids, kind)

    def write(offset: int, data: bytes) -> None:
        config_space.write(hw, pci, read(), offset, data)

    tree.binary(f"{path}/config", Binary(read, write, config_space.HEADER))


def _bridges(tree: Tree, hw: Hardware, place: Place) -> None:
    path = "/devices/" + place.sysfs.split("/", 1)[0]
    for depth, pci in enumerate(place.behind):
        path = f"{path}/{pci}"
        if tree.find(f"{path}/class") is None:
            _common(tree, hw, path, place.numa, _SWITCH if depth else _ROOT_PORT)
            _driver(tree, path, pci, "pcieport")


def _driver(tree: Tree, path: str, pci: str, driver: str, loads: int = 0) -> None:
    tree.link(f"{path}/driver", f"/bus/pci/drivers/{driver}")
    tree.link(f"/bus/pci/drivers/{driver}/{pci}", path, loads)
    tree.link(f"/bus/pci/drivers/{driver}/module", f"/module/{driver}")


def _function(tree: Tree, hw: Hardware, place: Place, part: Nic | Gpu, kind: str) -> None:
    path = f"/devices/{place.sysfs}"
    _common(tree, hw, path, place.numa, (part.vendor, part.device, kind))
    _driver(tree, path, place.pci, part.driver, hw.state.gpu_loads if isinstance(part, Gpu) else 0)
    for name in ("current", "max"):
        tree.text(f"{path}/{name}_link_speed", part.pcie_speed)
        tree.text(f"{path}/{name}_link_width", part.pcie_width)
    tree.text(f"{path}/subsystem_vendor", part.subsystem_vendor)
    tree.text(f"{path}/subsystem_device", part.subsystem_device)
    tree.text(f"{path}/revision", "0x00")
    tree.text(f"{path}/uevent", _uevent(place, part, kind))


def _uevent(place: Place, part: Nic | Gpu, kind: str) -> str:
    ids = f"{part.vendor[2:]}:{part.device[2:]}".upper()
    subsystem = f"{part.subsystem_vendor[2:]}:{part.subsystem_device[2:]}".upper()
    lines = (
        f"DRIVER={part.driver}",
        f"PCI_CLASS={kind[2:].lstrip('0').upper()}",
        f"PCI_ID={ids}",
        f"PCI_SUBSYS_ID={subsystem}",
        f"PCI_SLOT_NAME={place.pci}",
    )
    return "\n".join(lines)
