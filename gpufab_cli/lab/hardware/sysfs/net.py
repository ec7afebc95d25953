"""Network interfaces: rails with their NIC, and whatever else the node has without one."""

import errno
from collections.abc import Callable
from functools import partial

from gpufab_cli.lab.hardware.model import Hardware, fail
from gpufab_cli.lab.hardware.state import PRIORITIES, Port
from gpufab_cli.lab.hardware.sysfs import sriov
from gpufab_cli.lab.hardware.sysfs.tree import Tree, number

U32 = 2**32 - 1
# Where the driver checks more than the width of the field (NVIDIA "DCQCN CC parameters").
RANGES = {
    "cnp_dscp": (0, 63),
    "cnp_802p_prio": (0, 7),
    "dce_tcp_g": (0, 1023),
    "dce_tcp_rtt": (1, 131071),
    "initial_alpha_value": (1, 1023),
    "rpg_min_dec_fac": (0, 100),
    "rpg_gd": (0, 15),
    "clamp_tgt_rate": (0, 1),
    "clamp_tgt_rate_after_time_inc": (0, 1),
}
_ARPHRD_INFINIBAND = 32
_IPOIB = "00:00:10:49:fe:80:00:00:00:00:00:00"
_STATISTICS = ("rx_bytes", "rx_packets", "rx_errors", "rx_dropped", "tx_bytes", "tx_packets", "tx_errors", "tx_dropped")
# Where /proc/net/dev has them.
_COLUMNS = (0, 1, 2, 3, 8, 9, 10, 11)


def add(tree: Tree, hw: Hardware) -> None:
    """Adds all interfaces that the node has now."""
    tree.directory("/class/net")
    virtual_functions = sriov.netdevs(hw)
    for name in hw.live().names() if hw.node else ():
        place = hw.place(name)
        if hw.state.fault("nic-dead", name):
            continue
        if place is None:
            _other(tree, hw, name, virtual_functions.get(name))
            continue
        device = f"/devices/{place.sysfs}"
        path = f"{device}/net/{name}"
        _interface(tree, hw, name, path)
        _port(tree, hw, name, path)
        tree.link(f"{path}/device", device)
        vendor = hw.machine.stack.control == "vendor" and not hw.state.fault("no-ecn-sysfs")
        if vendor and hw.machine.is_ethernet(place):
            tree.later(f"{path}/ecn", partial(_ecn, hw, name, f"{path}/ecn"))
    _stacked(tree, hw)


def _stacked(tree: Tree, hw: Hardware) -> None:
    """Bonds and VLANs over ports. They are macvlans in truth; /sys shows them as what they stand for."""
    for place in hw.machine.ports:
        holder = tree.find(f"/class/net/{place.holder}")
        if place.holder == place.netdev or holder is None or tree.find(f"/class/net/{place.netdev}") is None:
            continue
        above, below = f"/devices/virtual/net/{place.holder}", f"/devices/{place.sysfs}/net/{place.netdev}"
        tree.link(f"{below}/upper_{place.holder}", above)
        tree.link(f"{above}/lower_{place.netdev}", below)
        if place.bond:
            tree.link(f"{below}/master", above)
            tree.live(f"{below}/bonding_slave/perm_hwaddr", partial(hw.live().mac, place.netdev))
            tree.live(f"{below}/bonding_slave/mii_status", partial(_operstate, hw, place.netdev))
            tree.text(f"{below}/bonding_slave/ad_aggregator_id", 1)
            tree.text(f"{above}/bonding/ad_aggregator", 1)
            tree.text(f"{above}/bonding/mode", "802.3ad 4")
            tree.text(f"{above}/bonding/slaves", " ".join(p.netdev for p in hw.machine.ports if p.bond == place.bond))
        else:
            tree.text(f"{above}/uevent", f"DEVTYPE=vlan\nINTERFACE={place.holder}")


def _other(tree: Tree, hw: Hardware, name: str, device: str | None) -> None:
    """The netdev of a VF, or one without hardware."""
    path = f"{device}/net/{name}" if device else f"/devices/virtual/net/{name}"
    _interface(tree, hw, name, path)
    if device:
        tree.link(f"{path}/device", device)


def _interface(tree: Tree, hw: Hardware, name: str, path: str) -> None:
    tree.link(f"/class/net/{name}", path)
    tree.link(f"{path}/subsystem", "/class/net")
    tree.live(f"{path}/address", partial(_address, hw, name))
    tree.live(f"{path}/mtu", lambda: hw.live().mtu(name), lambda text: hw.live().set_mtu(name, number(text, 68, U32)))
    tree.live(f"{path}/ifindex", lambda: hw.live().index(name))
    place = hw.place(name)
    infiniband = place is not None and not hw.machine.is_ethernet(place)
    tree.live(f"{path}/type", lambda: _ARPHRD_INFINIBAND if infiniband else hw.live().hardware_type(name))
    tree.live(f"{path}/flags", lambda: hex(hw.live().flags(name)))
    tree.live(f"{path}/operstate", partial(_operstate, hw, name))
    tree.live(f"{path}/carrier", partial(_carrier, hw, name))
    tree.text(f"{path}/dev_id", "0x0")
    tree.text(f"{path}/dev_port", 0)
    tree.later(f"{path}/statistics", partial(_statistics, hw, name, f"{path}/statistics"))


def _statistics(hw: Hardware, name: str, path: str, tree: Tree) -> None:
    for statistic, column in zip(_STATISTICS, _COLUMNS, strict=True):
        tree.live(f"{path}/{statistic}", partial(_counter, hw, name, column))


def _address(hw: Hardware, name: str) -> str:
    """A MAC, one for all ports of a bond; that of IPoIB is a queue pair number, the subnet and the port's GUID."""
    place = hw.place(name)
    if place is not None and place.bond:
        name = next(port.netdev for port in hw.machine.ports if port.bond == place.bond)
    if place is None or hw.machine.is_ethernet(place):
        return hw.live().mac(name)
    guid = hw.identity.guid(hw.machine.ports.index(place)).replace(":", "")
    return _IPOIB + ":" + ":".join(guid[i : i + 2] for i in range(0, 16, 2))


def _counter(hw: Hardware, name: str, column: int) -> int:
    return hw.live().counters(name)[column]


def _operstate(hw: Hardware, name: str) -> str:
    if hw.place(name) is None and not hw.live().is_ethernet(name):
        return "unknown"
    return "up" if hw.live().admin_up(name) and hw.live().carrier(name) else "down"


def _carrier(hw: Hardware, name: str) -> int:
    if not hw.live().admin_up(name):
        raise fail(errno.EINVAL)
    return int(hw.live().carrier(name))


def _port(tree: Tree, hw: Hardware, name: str, path: str) -> None:
    def speed() -> int:
        return hw.machine.nic.speed_gbps * 1000 if _carrier(hw, name) else -1

    tree.live(f"{path}/speed", speed)
    tree.live(f"{path}/duplex", lambda: "full" if _carrier(hw, name) else "unknown")
    tree.text(f"{path}/phys_port_name", "p0")


def _ecn(hw: Hardware, name: str, path: str, tree: Tree) -> None:
    """The vendor driver's congestion control files."""
    for side in ("np", "rp"):
        for priority in range(PRIORITIES):
            read = partial(_enabled, hw, name, side, priority)
            write = partial(_enable, hw, name, side, priority)
            tree.live(f"{path}/roce_{side}/enable/{priority}", read, write)
        values: dict[str, int] = getattr(hw.port(name), side)
        for key in values:
            tree.live(f"{path}/roce_{side}/{key}", partial(_value, hw, name, side, key), _setter(hw, name, side, key))


def _enabled(hw: Hardware, name: str, side: str, priority: int) -> int:
    flags: list[bool] = getattr(hw.port(name), f"{side}_enable")
    return int(flags[priority])


def _enable(hw: Hardware, name: str, side: str, priority: int, text: str) -> None:
    wanted = bool(number(text, 0, 1))

    def edit(port: Port) -> None:
        getattr(port, f"{side}_enable")[priority] = wanted

    hw.change(name, edit)


def _value(hw: Hardware, name: str, side: str, key: str) -> int:
    values: dict[str, int] = getattr(hw.port(name), side)
    return values[key]


def _setter(hw: Hardware, name: str, side: str, key: str) -> Callable[[str], None]:
    low, high = RANGES.get(key, (0, U32))

    def write(text: str) -> None:
        wanted = number(text, low, high)
        hw.change(name, lambda port: getattr(port, side).update({key: wanted}))

    return write
