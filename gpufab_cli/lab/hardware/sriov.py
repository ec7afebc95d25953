"""Virtual functions as the PCI core and mlx5 have them: counts, drivers, addresses (drivers/pci/iov.c, mlx5 eswitch).

What sets something raises OSError with the errno the kernel gives.
"""

import errno
from collections.abc import Callable
from typing import Any

from gpufab_cli.lab.hardware.cards import Card, Parameter, parameters, slot
from gpufab_cli.lab.hardware.model import Hardware, fail
from gpufab_cli.lab.hardware.state import Port
from gpufab_cli.lab.hardware.vf_state import NO_GUID, NO_MAC, Sriov, Vf, mac_guid, vf_name, vf_pci
from gpufab_cli.lab.machine import PortPlace

VFIO = "vfio-pci"
_FIRST_GROUP = 100
_LAST_PRIORITY = 7


def card_of(hw: Hardware, place: PortPlace) -> Card:
    """The card that a port is on."""
    return hw.state.cards.setdefault(slot(place), Card())


def ports_of(hw: Hardware, place: PortPlace) -> list[PortPlace]:
    """All ports of a port's card."""
    return [other for other in hw.machine.ports if slot(other) == slot(place)]


def kinds(hw: Hardware, place: PortPlace) -> dict[str, Parameter]:
    """The parameters of a port's card."""
    return parameters(hw.machine, len(ports_of(hw, place)))


def running(hw: Hardware, place: PortPlace, name: str) -> int:
    """A parameter as it runs."""
    return card_of(hw, place).current.get(name, kinds(hw, place)[name].default)


def total(hw: Hardware, place: PortPlace) -> int | None:
    """How many VFs the firmware allows; None without an SR-IOV capability."""
    return running(hw, place, "NUM_OF_VFS") if running(hw, place, "SRIOV_EN") else None


def pci(hw: Hardware, place: PortPlace, index: int) -> str:
    """A VF's address."""
    return vf_pci(place.pci, index, total(hw, place) or 0)


def find(hw: Hardware, address: str) -> tuple[PortPlace, int]:
    """The VF at an address.

    Raises:
        OSError: ENODEV.
    """
    for place in hw.machine.ports:
        for index, _ in enumerate(hw.port(place.netdev).sriov.vfs):
            if pci(hw, place, index) == address:
                return place, index
    raise fail(errno.ENODEV)


def group(hw: Hardware, place: PortPlace, index: int) -> int:
    """A VF's IOMMU group."""
    return _FIRST_GROUP + hw.machine.ports.index(place) * 128 + index


def set_count(hw: Hardware, place: PortPlace, count: int) -> None:
    """Writes sriov_numvfs.

    Raises:
        OSError: ERANGE above the total, EBUSY from one count to another, ENOMEM and ENOSPC where a fault has it so.
    """
    have, limit = len(_vfs(hw, place)), total(hw, place) or 0
    if count > limit:
        raise fail(errno.ERANGE)
    if count == have:
        return
    if count and have:
        hw.log(f"mlx5_core {place.pci}: {have} VFs already enabled. Disable before enabling {count} VFs")
        raise fail(errno.EBUSY)
    if count and hw.machine.nic.driver == "bnxt_en" and not hw.live().admin_up(place.netdev):
        hw.log(f"bnxt_en {place.pci} {place.netdev}: Reject SRIOV config request since if is down!")
        return  # bnxt_sriov_configure returns 0, and sysfs takes that for done
    if count:
        _check_room(hw, place, count)
        _create(hw, place, count)
    else:
        remove_all(hw, place)


def _check_room(hw: Hardware, place: PortPlace, count: int) -> None:
    if hw.state.fault("enomem-bios", place.netdev):
        hw.log(f"mlx5_core {place.pci}: not enough MMIO resources for SR-IOV")
        raise fail(errno.ENOMEM)
    if hw.state.fault("enospc-msix", place.netdev):
        hw.log(f"mlx5_core {place.pci}: failed to enable {count} VFs: no MSI-X vectors left, -28")
        raise fail(errno.ENOSPC)


def _vfs(hw: Hardware, place: PortPlace) -> list[Vf]:
    return hw.port(place.netdev).sriov.vfs


def _create(hw: Hardware, place: PortPlace, count: int) -> None:
    """New VFs know no address; an InfiniBand one is down until it is told otherwise."""
    state = "auto" if hw.machine.is_ethernet(place) else "disable"
    edit(hw, place, lambda sriov: setattr(sriov, "vfs", [Vf(state=state) for _ in range(count)]))
    if hw.port(place.netdev).sriov.autoprobe:
        for index in range(count):
            bind(hw, place, index, hw.machine.nic.driver)


def remove_all(hw: Hardware, place: PortPlace) -> None:
    """All VFs of a port go, whoever uses them."""
    for index, _ in enumerate(_vfs(hw, place)):
        _let_go(hw, place, index)
    edit(hw, place, lambda sriov: setattr(sriov, "vfs", []))


def edit(hw: Hardware, place: PortPlace, change: Callable[[Sriov], None]) -> None:
    """Edits a port's SR-IOV state; files of /sys may come or go with it."""

    def apply(port: Port) -> None:
        change(port.sriov)

    hw.change(place.netdev, apply)
    hw.restructure()


def bind(hw: Hardware, place: PortPlace, index: int, driver: str) -> None:
    """A driver takes a VF.

    Raises:
        OSError: EBUSY when it has one, ENODEV when the kernel may not bind it or the driver is not for it.
    """
    vf = _vfs(hw, place)[index]
    if vf.driver:
        raise fail(errno.EBUSY)
    wanted = vf.override or hw.machine.nic.driver
    if driver != wanted or not (vf.override or hw.port(place.netdev).sriov.autoprobe):
        raise fail(errno.ENODEV)
    if driver == VFIO:
        _device(hw, f"vfio/{group(hw, place, index)}", True)
        edit(hw, place, lambda sriov: setattr(sriov.vfs[index], "driver", driver))
    else:
        _bind_native(hw, place, index)


def _bind_native(hw: Hardware, place: PortPlace, index: int) -> None:
    """mlx5 takes over MAC and GUIDs as they are now; without a MAC it makes one up, and the GUID is zero."""
    number = _free_number(hw)

    def take(sriov: Sriov) -> None:
        vf = sriov.vfs[index]
        vf.driver, vf.rdma = hw.machine.nic.driver, number
        vf.own_guid = mac_guid(vf.mac) if hw.machine.is_ethernet(place) else vf.node_guid

    edit(hw, place, take)
    mac = _vfs(hw, place)[index].mac
    rail = hw.machine.ports.index(place)
    made_up = hw.identity.mac(1000 * (rail + 1) + index)
    if hw.plug is not None:
        hw.plug.attach(rail, index, vf_name(place.netdev, index), made_up if mac == NO_MAC else mac)
    _device(hw, f"infiniband/uverbs{number}", True)
    hw.restructure()


def _free_number(hw: Hardware) -> int:
    taken = {vf.rdma for port in hw.state.ports.values() for vf in port.sriov.vfs}
    first = len(hw.machine.ports)
    return next(number for number in range(first, first + len(taken) + 1) if number not in taken)


def unbind(hw: Hardware, place: PortPlace, index: int, driver: str) -> None:
    """A driver lets a VF go.

    Raises:
        OSError: ENODEV when it has not got it.
    """
    if _vfs(hw, place)[index].driver != driver:
        raise fail(errno.ENODEV)
    _let_go(hw, place, index)


def _let_go(hw: Hardware, place: PortPlace, index: int) -> None:
    vf = _vfs(hw, place)[index]
    if vf.driver == VFIO:
        _device(hw, f"vfio/{group(hw, place, index)}", False)
    elif vf.driver:
        _device(hw, f"infiniband/uverbs{vf.rdma}", False)
        if hw.plug is not None:
            hw.plug.detach(hw.machine.ports.index(place), index)

    def clear(sriov: Sriov) -> None:
        sriov.vfs[index].driver, sriov.vfs[index].rdma, sriov.vfs[index].own_guid = "", -1, NO_GUID

    edit(hw, place, clear)


def _device(hw: Hardware, path: str, present: bool) -> None:
    if hw.plug is not None:
        hw.plug.device(path, present)


def set_vf(hw: Hardware, place: PortPlace, index: int, values: dict[str, Any]) -> None:
    """Sets what a physical function keeps of a VF.

    Raises:
        OSError: EINVAL for a VF or a priority that is not there, or a MAC no interface can have; EOPNOTSUPP for what
            the link layer does not have, and while the port is no legacy switch.
    """
    if not 0 <= index < len(_vfs(hw, place)) or values.get("vlan_qos", 0) > _LAST_PRIORITY:
        raise fail(errno.EINVAL)
    foreign = (
        {"node_guid", "port_guid"}
        if hw.machine.is_ethernet(place)
        else {"mac", "vlan", "vlan_qos", "spoofchk", "trust"}
    )
    if foreign & set(values) or hw.port(place.netdev).sriov.eswitch != "legacy":
        raise fail(errno.EOPNOTSUPP)
    if int(str(values.get("mac", "00"))[:2], 16) & 1:
        raise fail(errno.EINVAL)
    edit(hw, place, lambda sriov: vars(sriov.vfs[index]).update(values))


def is_active(hw: Hardware, place: PortPlace, index: int) -> bool:
    """Whether a VF's own port is up: as its policy says, and on InfiniBand only with a GUID."""
    vf = _vfs(hw, place)[index]
    up = vf.state == "enable" or (vf.state == "auto" and hw.live().admin_up(place.netdev) and hw.carrier(place.netdev))
    return up and (hw.machine.is_ethernet(place) or NO_GUID not in (vf.own_guid, vf.port_guid))


def reset_card(hw: Hardware, place: PortPlace) -> None:
    """mlxfwreset: firmware and driver of a card start anew.

    Raises:
        OSError: EBUSY while one of its ports has VFs.
    """
    ports = ports_of(hw, place)
    if any(_vfs(hw, port) for port in ports):
        raise fail(errno.EBUSY)

    def restart(port: Port) -> None:
        vars(port).update(vars(port.driver_reload()))
        if not hw.state.fault("firmware-not-applied"):
            card_of(hw, place).reset()

    for port in ports:
        hw.change(port.netdev, restart)
        hw.flap(port.netdev)
    hw.restructure()
    hw.save()
