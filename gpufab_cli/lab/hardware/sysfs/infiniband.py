"""RDMA devices: ports, GIDs, counters, the vendor's traffic class, and RDMA-CM's configfs."""

import errno
import ipaddress
from functools import partial

from gpufab_cli.lab.hardware.model import Hardware, fail
from gpufab_cli.lab.hardware.state import ROCE_MODES, Port
from gpufab_cli.lab.hardware.sysfs.tree import Tree, number
from gpufab_cli.lab.machine import Manager, PortPlace

# A ConnectX has 255; the first 16 are enough for a lab, where each address takes two.
GIDS = 16
_NO_GID = "0000:0000:0000:0000:0000:0000:0000:0000"
FIRST_LID = 16
_UVERBS_MAJOR, _UVERBS_FIRST_MINOR = 231, 192
_HW_COUNTERS = (
    "duplicate_request",
    "implied_nak_seq_err",
    "local_ack_timeout_err",
    "np_cnp_sent",
    "np_ecn_marked_roce_packets",
    "out_of_buffer",
    "out_of_sequence",
    "packet_seq_err",
    "req_cqe_error",
    "req_cqe_flush_error",
    "req_remote_access_errors",
    "req_remote_invalid_request",
    "resp_cqe_error",
    "resp_cqe_flush_error",
    "resp_local_length_error",
    "resp_remote_access_errors",
    "rnr_nak_retry_err",
    "roce_adp_retrans",
    "roce_adp_retrans_to",
    "roce_slow_restart",
    "roce_slow_restart_cnps",
    "roce_slow_restart_trans",
    "rp_cnp_handled",
    "rp_cnp_ignored",
    "rx_atomic_requests",
    "rx_dct_connect",
    "rx_icrc_encapsulated",
    "rx_read_requests",
    "rx_write_requests",
)


def add(tree: Tree, hw: Hardware) -> None:
    """Adds all RDMA devices and, while rdma_cm is loaded, its configfs."""
    tree.directory("/kernel/config")
    for index, place in enumerate(hw.machine.ports):
        if place.rdma and not hw.state.fault("nic-dead", place.netdev):
            _device(tree, hw, place, index)
    for manager in hw.machine.managers:
        _manager(tree, hw, manager)
    if not hw.state.fault("no-rdma-cm"):
        _configfs(tree, hw)


def _manager(tree: Tree, hw: Hardware, manager: Manager) -> None:
    """A device that manages NVSwitches: always up, on a link of its own inside the baseboard."""
    function = f"/devices/{manager.sysfs}"
    path = f"{function}/infiniband/{manager.rdma}"
    tree.link(f"/class/infiniband/{manager.rdma}", path)
    tree.link(f"{path}/device", function)
    tree.text(f"{path}/node_guid", hw.identity.guid(len(hw.machine.ports) + hw.machine.managers.index(manager)))
    tree.text(f"{path}/node_type", "1: CA")
    for name, value in (
        ("state", "4: ACTIVE"),
        ("phys_state", "5: LinkUp"),
        ("rate", hw.machine.nic.rate),
        ("link_layer", "InfiniBand"),
    ):
        tree.text(f"{path}/ports/1/{name}", value)


def _device(tree: Tree, hw: Hardware, place: PortPlace, index: int) -> None:
    function, nic = f"/devices/{place.sysfs}", hw.machine.nic
    path = f"{function}/infiniband/{place.rdma}"
    guid = hw.identity.guid(index)
    tree.link(f"/class/infiniband/{place.rdma}", path)
    tree.link(f"{path}/device", function)
    tree.link(f"{path}/subsystem", "/class/infiniband")
    for name, value in (
        ("node_guid", guid),
        ("sys_image_guid", guid),
        ("node_type", "1: CA"),
        ("board_id", nic.psid),
        ("fw_ver", nic.firmware),
        ("hca_type", nic.hca_type),
        ("hw_rev", "0"),
    ):
        tree.text(f"{path}/{name}", value)
    tree.later(f"{path}/ports/1", partial(_port, hw, place, f"{path}/ports/1"))
    vendor = hw.machine.stack.control == "vendor" and not hw.state.fault("no-ecn-sysfs")
    if vendor and hw.machine.is_ethernet(place):
        tree.live(f"{path}/tc/1/traffic_class", partial(_traffic_class, hw, place), partial(_set_class, hw, place))
    verbs = f"{function}/infiniband_verbs/uverbs{index}"
    tree.link(f"/class/infiniband_verbs/uverbs{index}", verbs)
    tree.text(f"{verbs}/ibdev", place.rdma)
    tree.text(f"{verbs}/dev", f"{_UVERBS_MAJOR}:{_UVERBS_FIRST_MINOR + index}")


def _port(hw: Hardware, place: PortPlace, path: str, tree: Tree) -> None:
    def active() -> bool:
        return hw.live().admin_up(place.netdev) and hw.carrier(place.netdev)

    tree.live(f"{path}/state", lambda: "4: ACTIVE" if active() else "1: DOWN")
    tree.live(f"{path}/phys_state", lambda: "5: LinkUp" if active() else "3: Disabled")
    tree.text(f"{path}/rate", hw.machine.nic.rate)
    ethernet = hw.machine.is_ethernet(place)
    tree.text(f"{path}/link_layer", "Ethernet" if ethernet else "InfiniBand")
    lid = 0 if ethernet else FIRST_LID + hw.machine.ports.index(place)
    sm_lid = int(not ethernet)
    for name, value in (("lid", hex(lid)), ("sm_lid", hex(sm_lid)), ("cap_mask", "0x00010000")):
        tree.text(f"{path}/{name}", value)
    for counter in _HW_COUNTERS:
        tree.text(f"{path}/hw_counters/{counter}", 0)
    tree.text(f"{path}/hw_counters/lifespan", 10)
    for row in range(GIDS):
        tree.live(f"{path}/gids/{row}", partial(_gid, hw, place, row))
        tree.live(f"{path}/gid_attrs/types/{row}", partial(_gid_type, hw, place, row))
        tree.live(f"{path}/gid_attrs/ndevs/{row}", partial(_gid_netdev, hw, place, row))


def gids(hw: Hardware, place: PortPlace) -> list[bytes]:
    """The addresses of a port in GID order: link-local first, then IPv4 as mapped addresses, then other IPv6."""
    live, names = hw.live(), hw.live().names()
    netdevs = [name for name in dict.fromkeys((place.netdev, place.holder)) if name in names]
    six = [address for name in netdevs for address in live.ipv6(name)]
    local = [address for address in six if address[:2] == b"\xfe\x80"]
    mapped = [ipaddress.IPv6Address(f"::ffff:{address}").packed for name in netdevs for address in live.ipv4(name)]
    return [*local, *mapped, *(address for address in six if address not in local)]


def _entry(hw: Hardware, place: PortPlace, row: int) -> bytes | None:
    """Each address takes two rows: RoCE v1, then RoCE v2."""
    held = gids(hw, place)
    return held[row // 2] if row // 2 < len(held) else None


def _gid(hw: Hardware, place: PortPlace, row: int) -> str:
    held = _entry(hw, place, row)
    return ipaddress.IPv6Address(held).exploded if held else _NO_GID


def _gid_type(hw: Hardware, place: PortPlace, row: int) -> str:
    if _entry(hw, place, row) is None:
        raise fail(errno.EINVAL)
    return ROCE_MODES[row % 2]


def _gid_netdev(hw: Hardware, place: PortPlace, row: int) -> str:
    if _entry(hw, place, row) is None:
        raise fail(errno.EINVAL)
    return place.holder


def _traffic_class(hw: Hardware, place: PortPlace) -> str:
    value = hw.port(place.netdev).traffic_class
    return "" if value is None else f"Global tclass={value}"


def _set_class(hw: Hardware, place: PortPlace, text: str) -> None:
    value = number(text.strip().removeprefix("tclass="), -1, 255)
    hw.change(place.netdev, lambda port: setattr(port, "traffic_class", None if value < 0 else value))


def _configfs(tree: Tree, hw: Hardware) -> None:
    base = "/kernel/config/rdma_cm"

    def make(name: str) -> None:
        netdev = next((place.netdev for place in hw.machine.ports if place.rdma == name), None)
        if netdev is None:
            raise fail(errno.ENODEV)
        hw.cma_directory(netdev, True)

    tree.directory(base).make = make
    for place in hw.machine.ports:
        if hw.port(place.netdev).cma.directory:
            _cma(tree, hw, place, f"{base}/{place.rdma}")


def _cma(tree: Tree, hw: Hardware, place: PortPlace, path: str) -> None:
    netdev = place.netdev

    def set_mode(text: str) -> None:
        mode = text.strip()
        if mode not in ROCE_MODES:
            raise fail(errno.EINVAL)
        hw.change(netdev, lambda port: setattr(port.cma, "mode", mode))

    def set_tos(text: str) -> None:
        # kstrtou8: beyond a byte it is out of range, not invalid.
        tos = number(text, 0, 255, errno.ERANGE)
        hw.change(netdev, lambda port: setattr(port.cma, "tos", tos))

    def port() -> Port:
        return hw.port(netdev)

    tree.directory(path).remove = partial(hw.cma_directory, netdev, False)
    tree.live(f"{path}/ports/1/default_roce_mode", lambda: port().cma.mode, set_mode)
    tree.live(f"{path}/ports/1/default_roce_tos", lambda: port().cma.tos, set_tos)
