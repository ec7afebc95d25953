"""ECN, CNP and DCQCN by the vendor's driver: ``ecn/`` of the netdev in sysfs (MLNX_OFED en_sysfs.c)."""

from typing import Mapping, Sequence, Tuple, Union

from ..change import ABSENT, Unknown
from ..host import Host, Reader
from .backend import Congestion, Port, Turn
from .knobs import vendor_file
from .seen import Control
from .sysfs import number
from .want import PRIORITIES

CONTROL: Control = "vendor"
NO_ECN = "no ecn/ in sysfs: the driver is not the vendor's"
SIDES = {"ecn_np": "roce_np", "ecn_rp": "roce_rp"}
_CNP_FILES = {"cnp_dscp": "cnp_dscp", "cnp_priority": "cnp_802p_prio"}


def ecn_path(netdev: str, side: str, name: str) -> str:
    """A file of the reaction point (``roce_rp``) or notification point (``roce_np``)."""
    return f"/sys/class/net/{netdev}/ecn/{side}/{name}"


def read(host: Reader, port: Port, knobs: Sequence[str]) -> Congestion:
    """Both sides, CNP marking and the named parameters."""
    return Congestion(
        ecn_np=read_enabled(host, port.netdev, "roce_np"),
        ecn_rp=read_enabled(host, port.netdev, "roce_rp"),
        cnp_dscp=_number(host, port.netdev, "roce_np", _CNP_FILES["cnp_dscp"]),
        cnp_priority=_number(host, port.netdev, "roce_np", _CNP_FILES["cnp_priority"]),
        dcqcn={knob: _number(host, port.netdev, *vendor_file(knob)) for knob in knobs},
    )


def read_enabled(host: Reader, netdev: str, side: str) -> Union[Tuple[int, ...], Unknown]:
    """The priorities for which a side is enabled."""
    flags = [host.read(ecn_path(netdev, side, f"enable/{priority}")) for priority in range(PRIORITIES)]
    for flag in flags:
        if isinstance(flag, Unknown):
            return flag
        if flag is ABSENT:
            return Unknown(NO_ECN)
        if flag not in ("0", "1"):
            return Unknown(f"{ecn_path(netdev, side, 'enable')}: {flag!r} is neither 0 nor 1")
    return tuple(priority for priority, flag in enumerate(flags) if flag == "1")


def _number(host: Reader, netdev: str, side: str, name: str) -> Union[int, Unknown]:
    path = ecn_path(netdev, side, name)
    value = host.read(path)
    return Unknown(NO_ECN) if value is ABSENT else number(path, value)


def set_ecn(host: Host, port: Port, sides: Mapping[str, Turn]) -> None:
    """Enable and disable each side on the priorities that differ."""
    for side, (current, desired) in sides.items():
        for priority in sorted(set(current) ^ set(desired)):
            flag = "1" if priority in desired else "0"
            host.set(ecn_path(port.netdev, SIDES[side], f"enable/{priority}"), flag)


def set_cnp(host: Host, port: Port, values: Mapping[str, object]) -> None:
    """DSCP and 802.1p priority of CNPs."""
    for name, value in values.items():
        host.set(ecn_path(port.netdev, "roce_np", _CNP_FILES[name]), str(value))


def set_dcqcn(host: Host, port: Port, values: Mapping[str, object]) -> None:
    """DCQCN parameters by name."""
    for knob, value in values.items():
        host.set(ecn_path(port.netdev, *vendor_file(knob)), str(value))
