"""Congestion control where it is not in the vendor's sysfs: mlx5's debugfs, and configfs of Broadcom's bnxt_re."""

import errno
from collections.abc import Callable
from functools import partial

from gpufab_cli.lab.hardware.model import Hardware, fail
from gpufab_cli.lab.hardware.state import Port
from gpufab_cli.lab.hardware.sysfs.net import RANGES, U32
from gpufab_cli.lab.hardware.sysfs.tree import Tree, number
from gpufab_cli.lab.machine import PortPlace

DEBUGFS = "/kernel/debug/mlx5"
CONFIGFS = "/kernel/config/bnxt_re"
# Names in debugfs that are not "rp_" before the parameter's name without its "rpg_".
_DEBUGFS_NAMES = {
    "clamp_tgt_rate_after_time_inc": "rp_clamp_tgt_rate_ati",
    "min_time_between_cnps": "np_min_time_between_cnps",
    "cnp_dscp": "np_cnp_dscp",
    "cnp_802p_prio": "np_cnp_prio",
}
_BNXT_LARGEST = {"roce_dscp": 63, "cnp_dscp": 63, "roce_prio": 7, "cnp_prio": 7, "ecn_marking": 2, "ecn_enable": 255}


def add(tree: Tree, hw: Hardware) -> None:
    """Adds what the machine's driver shows."""
    if hw.machine.stack.control == "bnxt":
        _configfs(tree, hw)
    for place in hw.machine.ports:
        if hw.machine.stack.control == "inbox" and hw.machine.is_ethernet(place):
            _debugfs(tree, hw, place)


# ---- debugfs ---------------------------------------------------------------------------------------------------------


def _debugfs(tree: Tree, hw: Hardware, place: PortPlace) -> None:
    folder, port = f"{DEBUGFS}/{place.pci}/cc_params", hw.port(place.netdev)
    for side in ("np", "rp"):
        values: dict[str, int] = getattr(port, side)
        for key in values:
            name = _DEBUGFS_NAMES.get(key, "rp_" + key.removeprefix("rpg_"))
            write = partial(_set_parameter, hw, place.netdev, side, key)
            tree.live(f"{folder}/{name}", partial(_parameter, hw, place.netdev, side, key), write, mode=0o600)
    tree.live(
        f"{folder}/np_cnp_prio_mode", lambda: hw.port(place.netdev).cnp_prio_mode, partial(_mode, hw, place), mode=0o600
    )
    for name in ("rtt_resp_dscp", "rtt_resp_dscp_valid"):
        tree.text(f"{folder}/{name}", 0, mode=0o600)


def _parameter(hw: Hardware, netdev: str, side: str, key: str) -> int:
    values: dict[str, int] = getattr(hw.port(netdev), side)
    return values[key]


def _set_parameter(hw: Hardware, netdev: str, side: str, key: str, text: str) -> None:
    """Setting the priority of CNPs ends its being chosen by the firmware."""
    low, high = RANGES.get(key, (0, U32))
    wanted = number(text, low, high)

    def edit(port: Port) -> None:
        getattr(port, side)[key] = wanted
        if key == "cnp_802p_prio":
            port.cnp_prio_mode = 0

    hw.change(netdev, edit)


def _mode(hw: Hardware, place: PortPlace, text: str) -> None:
    wanted = number(text, 0, 1)
    hw.change(place.netdev, lambda port: setattr(port, "cnp_prio_mode", wanted))


# ---- configfs --------------------------------------------------------------------------------------------------------


def _configfs(tree: Tree, hw: Hardware) -> None:
    """A directory for each device somebody asks for; what is written is staged until `apply` is."""

    def make(name: str) -> None:
        place = next((place for place in hw.machine.ports if place.rdma == name), None)
        if place is None:
            raise fail(errno.ENODEV)
        _turn(hw, place, True)

    tree.directory(CONFIGFS).make = make
    for place in hw.machine.ports:
        if hw.port(place.netdev).bnxt_directory:
            path = f"{CONFIGFS}/{place.rdma}"
            tree.directory(path).remove = partial(_turn, hw, place, False)
            for name in hw.port(place.netdev).bnxt:
                _bnxt_file(tree, hw, place, f"{path}/ports/1/cc/{name}")
            apply: Callable[[str], None] = partial(_apply, hw, place)
            tree.live(f"{path}/ports/1/cc/apply", lambda: "0", apply)


def _turn(hw: Hardware, place: PortPlace, present: bool) -> None:
    hw.change(place.netdev, lambda port: setattr(port, "bnxt_directory", present))
    hw.restructure()


def _bnxt_file(tree: Tree, hw: Hardware, place: PortPlace, path: str) -> None:
    name = path.rsplit("/", 1)[1]

    def read() -> str:
        value = hw.port(place.netdev).bnxt[name]
        return hex(value) if value else "0"  # as %#x prints it

    def write(text: str) -> None:
        # sscanf with %x, whatever is before the digits.
        try:
            wanted = int(text.strip(), 16)
        except ValueError:
            raise fail(errno.EINVAL) from None
        if not 0 <= wanted <= _BNXT_LARGEST.get(name, 0xFFFF):
            raise fail(errno.EINVAL)
        hw.change(place.netdev, lambda port: port.bnxt_staged.update({name: wanted}))

    tree.live(path, read, write)


def _apply(hw: Hardware, place: PortPlace, text: str) -> None:
    if number(text, 0, 1):
        hw.change(place.netdev, _take)


def _take(port: Port) -> None:
    port.bnxt.update(port.bnxt_staged)
    port.bnxt_staged.clear()
