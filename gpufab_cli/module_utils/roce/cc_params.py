"""CNP and DCQCN by the kernel's own driver: ``cc_params`` in debugfs (drivers/infiniband/hw/mlx5/cong.c).

There is no switch for ECN a priority here: the firmware's ROCE_CC_PRIO_MASK_Pn decides, which takes a firmware reset.
It is read through mlxconfig or mstconfig, whichever there is; without either, ECN is Unknown.
"""

import re
from typing import Mapping, Sequence, Tuple, Union

from ..change import ABSENT, Absent, Unknown
from ..firmware import backend as firmware
from ..host import Host, HostError, Reader
from .backend import Congestion, Port, Turn
from .knobs import debugfs_file
from .seen import Control
from .want import PRIORITIES

CONTROL: Control = "inbox"
DEBUGFS = "/sys/kernel/debug/mlx5"
_CNP_FILES = {"cnp_dscp": "np_cnp_dscp", "cnp_priority": "np_cnp_prio"}


def path(pci: str, name: str = "") -> str:
    """The folder of a function's parameters, or one of them."""
    return f"{DEBUGFS}/{pci}/cc_params" + (f"/{name}" if name else "")


def read(host: Reader, port: Port, knobs: Sequence[str]) -> Congestion:
    """CNP marking and the named parameters from debugfs, ECN from the firmware."""
    mask = read_mask(host, port.pci)
    return Congestion(
        ecn_np=mask,
        ecn_rp=mask,
        cnp_dscp=_number(host, port.pci, _CNP_FILES["cnp_dscp"]),
        cnp_priority=_cnp_priority(host, port.pci),
        dcqcn={knob: _number(host, port.pci, debugfs_file(knob)) for knob in knobs},
    )


def _number(host: Reader, pci: str, name: str) -> Union[int, Unknown]:
    text = host.read(path(pci, name))
    if text is ABSENT:
        return Unknown(f"{path(pci, name)} is not there: the firmware does not offer it")
    if isinstance(text, Unknown):
        return text
    if not isinstance(text, str) or not re.fullmatch(r"\d{1,10}", text):
        return Unknown(f"{path(pci, name)}: {text!r} is not a number")
    return int(text)


def _cnp_priority(host: Reader, pci: str) -> Union[int, Absent, Unknown]:
    """ABSENT while the firmware chooses it: np_cnp_prio counts in mode 0 only."""
    mode = _number(host, pci, "np_cnp_prio_mode")
    if isinstance(mode, Unknown):
        return mode
    return ABSENT if mode else _number(host, pci, _CNP_FILES["cnp_priority"])


def mask_parameter(pci: str) -> str:
    """The mask of the port behind a function: each function of a two-port card is one port, counted from P1."""
    return f"ROCE_CC_PRIO_MASK_P{int(pci[-1]) + 1}"


def read_mask(host: Reader, pci: str) -> Union[Tuple[int, ...], Unknown]:
    """The priorities for which the firmware, as it runs now, has congestion control on."""
    parameter = mask_parameter(pci)
    found = firmware.read(host, pci, (parameter,))
    if isinstance(found, Unknown):
        return Unknown(f"ECN is the firmware's {parameter} here: {found.reason}")
    row = found[parameter]
    if isinstance(row, Absent):
        return Unknown(f"ECN is the firmware's {parameter} here, and this firmware has none of that name")
    return parse_mask(row.current)


def parse_mask(cell: Union[str, Unknown]) -> Union[Tuple[int, ...], Unknown]:
    """The priorities of a mask, printed in decimal or hexadecimal."""
    if isinstance(cell, Unknown):
        return cell
    mask = int(cell, 0) if re.fullmatch(r"0x[0-9a-fA-F]{1,2}|0|[1-9]\d{0,2}", cell) else 2**PRIORITIES
    if mask >= 2**PRIORITIES:
        return Unknown(f"{cell!r} is no mask of {PRIORITIES} priorities")
    return tuple(priority for priority in range(PRIORITIES) if mask >> priority & 1)


def set_ecn(host: Host, port: Port, sides: Mapping[str, Turn]) -> None:  # noqa: ARG001 (a backend's signature)
    """Nothing on the running host sets the mask; the plan never asks for it."""
    raise HostError(
        f"{' and '.join(sides)} of {port.netdev} is the firmware's {mask_parameter(port.pci)}, which needs a reset"
    )


def set_cnp(host: Host, port: Port, values: Mapping[str, object]) -> None:
    """Writing a priority ends the firmware's choice; ABSENT gives it back."""
    for name, value in values.items():
        if value is ABSENT:
            host.set(path(port.pci, "np_cnp_prio_mode"), "1")
        else:
            host.set(path(port.pci, _CNP_FILES[name]), str(value))


def set_dcqcn(host: Host, port: Port, values: Mapping[str, object]) -> None:
    """DCQCN parameters by name."""
    for knob, value in values.items():
        host.set(path(port.pci, debugfs_file(knob)), str(value))
