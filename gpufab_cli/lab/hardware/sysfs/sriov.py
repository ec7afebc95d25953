"""SR-IOV in sysfs: the attributes of physical functions, the functions of their VFs, and drivers that take them."""

import errno
from functools import partial

from gpufab_cli.lab.hardware import sriov
from gpufab_cli.lab.hardware.model import Hardware, fail
from gpufab_cli.lab.hardware.sysfs.system import cpu_mask
from gpufab_cli.lab.hardware.sysfs.tree import Tree
from gpufab_cli.lab.hardware.vf_state import STRIDE, Vf, vf_name
from gpufab_cli.lab.machine import PortPlace

_VF_DEVICE = "0x101e"  # ConnectX family mlx5Gen Virtual Function
_U16 = 0xFFFF


def add(tree: Tree, hw: Hardware) -> None:
    """Adds what SR-IOV brings to all ports, and the files by which drivers are bound."""
    for place in hw.machine.ports:
        limit = sriov.total(hw, place)
        if limit is not None:
            _physical(tree, hw, place, limit)
        for index, vf in enumerate(hw.port(place.netdev).sriov.vfs):
            _virtual(tree, hw, place, index, vf)
    for driver in (hw.machine.nic.driver, sriov.VFIO):
        base = f"/bus/pci/drivers/{driver}"
        tree.live(f"{base}/bind", str, partial(_bind, hw, driver))
        tree.live(f"{base}/unbind", str, partial(_unbind, hw, driver))
    tree.live("/bus/pci/drivers_probe", str, partial(_probe, hw))


def _physical(tree: Tree, hw: Hardware, place: PortPlace, limit: int) -> None:
    path, state = f"/devices/{place.sysfs}", hw.port(place.netdev).sriov
    tree.text(f"{path}/sriov_totalvfs", limit)
    tree.live(
        f"{path}/sriov_numvfs",
        lambda: len(hw.port(place.netdev).sriov.vfs),
        lambda text: sriov.set_count(hw, place, _u16(text)),
    )
    tree.live(
        f"{path}/sriov_drivers_autoprobe",
        lambda: int(hw.port(place.netdev).sriov.autoprobe),
        partial(_set_autoprobe, hw, place),
    )
    tree.text(f"{path}/sriov_offset", 2)
    tree.text(f"{path}/sriov_stride", STRIDE)
    tree.text(f"{path}/sriov_vf_device", _VF_DEVICE[2:])
    tree.text(f"{path}/sriov_vf_total_msix", 0)
    for index, _ in enumerate(state.vfs):
        tree.link(f"{path}/virtfn{index}", _path(hw, place, index))


def _u16(text: str) -> int:
    """As kstrtou16 takes it.

    Raises:
        OSError: EINVAL for what is no number, ERANGE for one of more than 16 bits.
    """
    word = text.strip()
    if not word.isdigit():
        raise fail(errno.EINVAL)
    if int(word) > _U16:
        raise fail(errno.ERANGE)
    return int(word)


def _set_autoprobe(hw: Hardware, place: PortPlace, text: str) -> None:
    """As kstrtobool takes it, as far as people write it."""
    word = text.strip()
    if word not in ("0", "1", "y", "n"):
        raise fail(errno.EINVAL)
    sriov.edit(hw, place, lambda state: setattr(state, "autoprobe", word in ("1", "y")))


def _path(hw: Hardware, place: PortPlace, index: int) -> str:
    """A VF's directory: beside its PF's, below the same bridge."""
    return f"/devices/{place.sysfs.rsplit('/', 1)[0]}/{sriov.pci(hw, place, index)}"


def _virtual(tree: Tree, hw: Hardware, place: PortPlace, index: int, vf: Vf) -> None:
    path, nic = _path(hw, place, index), hw.machine.nic
    pci = path.rsplit("/", 1)[1]
    tree.link(f"/bus/pci/devices/{pci}", path)
    tree.link(f"{path}/subsystem", "/bus/pci")
    tree.link(f"{path}/physfn", f"/devices/{place.sysfs}")
    for name, value in (
        ("vendor", nic.vendor),
        ("device", _VF_DEVICE),
        ("class", "0x020000" if hw.machine.is_ethernet(place) else "0x020700"),
        ("numa_node", place.numa),
        ("local_cpulist", hw.machine.cpus_near(place.numa)),
        ("local_cpus", cpu_mask(hw.machine.cpus_near(place.numa))),
        ("enable", int(bool(vf.driver))),
    ):
        tree.text(f"{path}/{name}", value)
    group = f"/kernel/iommu_groups/{sriov.group(hw, place, index)}"
    tree.link(f"{group}/devices/{pci}", path)
    tree.link(f"{path}/iommu_group", group)
    tree.live(f"{path}/driver_override", lambda: vf.override or "(null)", partial(_override, hw, place, index))
    if vf.driver:
        tree.link(f"{path}/driver", f"/bus/pci/drivers/{vf.driver}")
        tree.link(f"/bus/pci/drivers/{vf.driver}/{pci}", path)
    if vf.rdma >= 0:
        tree.directory(f"{path}/net")
        _rdma(tree, hw, place, index)


def _override(hw: Hardware, place: PortPlace, index: int, text: str) -> None:
    sriov.edit(hw, place, lambda state: setattr(state.vfs[index], "override", text.strip()))


def _rdma(tree: Tree, hw: Hardware, place: PortPlace, index: int) -> None:
    """A VF's RDMA device: enough to tell what it is and whether it is up."""
    function, number = _path(hw, place, index), hw.port(place.netdev).sriov.vfs[index].rdma
    name = f"mlx5_{number}"
    path = f"{function}/infiniband/{name}"
    tree.link(f"/class/infiniband/{name}", path)
    tree.link(f"{path}/device", function)
    tree.live(f"{path}/node_guid", lambda: _words(hw.port(place.netdev).sriov.vfs[index].own_guid))
    tree.text(f"{path}/node_type", "1: CA")
    tree.text(f"{path}/fw_ver", hw.machine.nic.firmware)
    tree.live(f"{path}/ports/1/state", lambda: "4: ACTIVE" if sriov.is_active(hw, place, index) else "1: DOWN")
    tree.live(f"{path}/ports/1/phys_state", lambda: "5: LinkUp" if sriov.is_active(hw, place, index) else "3: Disabled")
    tree.text(f"{path}/ports/1/rate", hw.machine.nic.rate)
    tree.text(f"{path}/ports/1/link_layer", hw.machine.nic.link_layer)
    verbs = f"{function}/infiniband_verbs/uverbs{number}"
    tree.link(f"/class/infiniband_verbs/uverbs{number}", verbs)
    tree.text(f"{verbs}/ibdev", name)


def _words(guid: str) -> str:
    """A GUID as sysfs prints it: four words."""
    octets = guid.split(":")
    return ":".join(octets[i] + octets[i + 1] for i in range(0, 8, 2))


def netdevs(hw: Hardware) -> dict[str, str]:
    """The device directory of each VF's netdev, by name."""
    return {
        vf_name(place.netdev, index): _path(hw, place, index)
        for place in hw.machine.ports
        for index, vf in enumerate(hw.port(place.netdev).sriov.vfs)
        if vf.rdma >= 0
    }


def _bind(hw: Hardware, driver: str, text: str) -> None:
    sriov.bind(hw, *sriov.find(hw, text.strip()), driver)


def _unbind(hw: Hardware, driver: str, text: str) -> None:
    sriov.unbind(hw, *sriov.find(hw, text.strip()), driver)


def _probe(hw: Hardware, text: str) -> None:
    """Has the kernel look for a driver; it does not tell when there is none for the device."""
    place, index = sriov.find(hw, text.strip())
    vf = hw.port(place.netdev).sriov.vfs[index]
    if not vf.driver and (vf.override or hw.port(place.netdev).sriov.autoprobe):
        sriov.bind(hw, place, index, vf.override or hw.machine.nic.driver)
