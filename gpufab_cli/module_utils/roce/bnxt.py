"""ECN, CNP and marking on Broadcom NICs: configfs of the vendor's bnxt_re driver (bnxt_re/configfs.c).

A device's directory must be made before anything can be read; until then all is ABSENT. Values are printed as ``%#x``
and parsed as hexadecimal with or without ``0x``, so that 26 written in decimal would become 38: always write ``0x``.
Older drivers only stage what is written until ``apply`` is.
"""

import re
from typing import Any, Dict, Iterable, Mapping, Sequence, Tuple, Union

from ..change import Absent, Unknown
from ..host import Host, HostError, Reader
from .backend import Congestion, Port, Turn
from .seen import Control

CONTROL: Control = "bnxt"
CONFIGFS = "/sys/kernel/config/bnxt_re"
NO_RDMA = "the port has no RDMA device"
ECT1 = 0b01
"""What the vendor's own setup script writes to ecn_marking: RoCE packets are ECN-capable, codepoint 1."""
DCQCN_MODE = 1
_CNP_FILES = {"cnp_dscp": "cnp_dscp", "cnp_priority": "cnp_prio"}
_KNOBS = {"min_time_between_cnps": "min_time_bet_cnp"}
_ECN_FILES = ("ecn_enable", "ecn_marking", "cc_mode", "roce_prio")
_WRITTEN: Dict[str, Tuple[str, ...]] = {
    "ecn_np": _ECN_FILES,
    "ecn_rp": _ECN_FILES,
    "traffic_class": ("roce_dscp",),
    **{name: (file,) for name, file in {**_CNP_FILES, **_KNOBS}.items()},
}
"""The files that are written for each setting."""

Number = Union[int, Absent, Unknown]


def path(rdma: str, name: str) -> str:
    """A file of a device's congestion control."""
    return f"{CONFIGFS}/{rdma}/ports/1/cc/{name}"


def read(host: Reader, port: Port, knobs: Sequence[str]) -> Congestion:
    """ECN, CNP marking and the one DCQCN parameter that this driver shares with others."""
    on = _ecn(host, port)
    return Congestion(
        ecn_np=on,
        ecn_rp=on,
        cnp_dscp=_number(host, port, _CNP_FILES["cnp_dscp"]),
        cnp_priority=_number(host, port, _CNP_FILES["cnp_priority"]),
        dcqcn={knob: _knob(host, port, knob) for knob in knobs},
    )


def _number(host: Reader, port: Port, name: str) -> Number:
    if port.rdma is None:
        return Unknown(NO_RDMA)
    text = host.read(path(port.rdma, name))
    if not isinstance(text, str):
        return text
    if not re.fullmatch(r"0|0x[0-9a-f]{1,8}", text):
        return Unknown(f"{path(port.rdma, name)}: {text!r} is not a number as bnxt_re prints it")
    return int(text, 16)


def _knob(host: Reader, port: Port, knob: str) -> Number:
    name = _KNOBS.get(knob)
    return _number(host, port, name) if name else Unknown(f"{knob} is not among the parameters of bnxt_re")


def _ecn(host: Reader, port: Port) -> Union[Tuple[int, ...], Absent, Unknown]:
    """The port has one RoCE priority: ECN is on for it if it is enabled and packets are marked ECN-capable."""
    enabled, marking, priority = (_number(host, port, name) for name in ("ecn_enable", "ecn_marking", "roce_prio"))
    for value in (enabled, marking, priority):
        if not isinstance(value, int):
            return value
    return (priority,) if enabled and marking and isinstance(priority, int) else ()


def look(host: Host, port: Port, names: Iterable[str]) -> Dict[str, Any]:
    """What the files of some settings hold before they are written, as JSON data for :func:`put_back`.

    The device's directory is made if need be: without it nobody can tell.
    """
    folder = _folder(port)
    made = not host.exists(folder)
    host.make_directory(folder)
    files = dict.fromkeys(file for name in names for file in _WRITTEN.get(name, ()))
    found = {file: _number(host, port, file) for file in files}
    values = {file: value for file, value in found.items() if isinstance(value, int)}
    return {"made": made, "values": values, "unknown": [file for file in files if file not in values]}


def put_back(host: Host, port: Port, found: Mapping[str, Any]) -> None:
    """Write back what :func:`look` has found, and take the directory away if it was made for that.

    Removing a directory alone brings no value back.

    Raises:
        HostError: some value could not be read before, or is not taken back.
    """
    values: Dict[str, int] = found["values"]
    _write(host, port, values)
    lost = [f"{file} was unreadable" for file in found["unknown"]]
    lost += [f"{file} was {value:#x}" for file, value in values.items() if _number(host, port, file) != value]
    if lost:
        raise HostError(f"{_folder(port)}: {', '.join(lost)}, which cannot be undone")
    if found["made"]:
        host.remove_directory(_folder(port))


def _folder(port: Port) -> str:
    if port.rdma is None:
        raise HostError(f"{port.netdev}: {NO_RDMA}")
    return f"{CONFIGFS}/{port.rdma}"


def _write(host: Host, port: Port, values: Mapping[str, int]) -> None:
    """Make the device's directory, which stays, write, and apply."""
    host.make_directory(_folder(port))
    for name, value in values.items():
        host.set(path(str(port.rdma), name), hex(value))
    host.set(path(str(port.rdma), "apply"), hex(1))


def set_ecn(host: Host, port: Port, sides: Mapping[str, Turn]) -> None:
    """Both sides are one switch of the port. Back to ABSENT is :func:`put_back`'s work, here and below."""
    _, desired = sides["ecn_rp"] if "ecn_rp" in sides else sides["ecn_np"]
    if not isinstance(desired, tuple):
        return
    if not desired:
        _write(host, port, {"ecn_enable": 0, "ecn_marking": 0})
        return
    _write(host, port, {"ecn_marking": ECT1, "ecn_enable": 1, "cc_mode": DCQCN_MODE, "roce_prio": desired[0]})


def set_cnp(host: Host, port: Port, values: Mapping[str, object]) -> None:
    """DSCP and priority of CNPs."""
    known: Dict[str, int] = {_CNP_FILES[name]: value for name, value in values.items() if isinstance(value, int)}
    if known:
        _write(host, port, known)


def set_dcqcn(host: Host, port: Port, values: Mapping[str, object]) -> None:
    """The parameters that bnxt_re has."""
    known: Dict[str, int] = {_KNOBS[knob]: value for knob, value in values.items() if isinstance(value, int)}
    if known:
        _write(host, port, known)


def read_traffic_class(host: Reader, port: Port) -> Number:
    """The ToS byte of RoCE packets: DSCP and ECN bits, which the driver keeps apart."""
    dscp, ecn = _number(host, port, "roce_dscp"), _number(host, port, "ecn_marking")
    if not isinstance(dscp, int) or not isinstance(ecn, int):
        return dscp if not isinstance(dscp, int) else ecn
    return dscp << 2 | ecn


def set_traffic_class(host: Host, port: Port, value: Union[int, Absent]) -> None:
    """The DSCP of RoCE packets; their ECN bits follow from whether ECN is on."""
    if isinstance(value, int):
        _write(host, port, {"roce_dscp": value >> 2})
