"""Firmware parameters of a card: defaults, what runs, and what the next reset brings.

Names and defaults are those of ConnectX-6 and -7 dumps. A dual-port card has one set for both ports.
"""

from dataclasses import dataclass, field
from functools import cache

from gpufab_cli.lab.machine import Machine, PortPlace

_OFF_ON = ("False", "True")
_LLDP = ("OFF", "MANDATORY", "ALL")


@dataclass(frozen=True)
class Parameter:
    """One parameter: its default, the names of its values where it has any, its largest value, its array length."""

    default: int = 0
    names: tuple[str, ...] = ()
    largest: int = 2**32 - 1
    length: int = 0
    hidden: bool = False

    def show(self, value: int) -> str:
        """A value as mlxconfig prints it."""
        if self.length:
            return f"Array[0..{self.length - 1}]"
        return f"{self.names[value]}({value})" if value < len(self.names) else str(value)

    def read(self, text: str) -> int | None:
        """A value as mlxconfig takes it, by name or number; None for one the parameter cannot have."""
        for value, name in enumerate(self.names):
            if text.lower() in (name.lower(), str(value)):
                return value
        number = int(text, 0) if not self.names and text.isdigit() else -1
        return number if 0 <= number <= self.largest else None


def _flag(default: int = 0) -> Parameter:
    return Parameter(default, _OFF_ON, 1)


def _per_port(port: int, ethernet: bool) -> dict[str, Parameter]:
    found = {
        "LINK_TYPE": Parameter(2 if ethernet else 1, ("", "IB", "ETH"), 2),
        "ROCE_CC_PRIO_MASK": Parameter(255, largest=255),
        "CNP_DSCP": Parameter(48, largest=63),
        "CNP_802P_PRIO": Parameter(6, largest=7),
        "LLDP_NB_DCBX": _flag(),
        "LLDP_NB_RX_MODE": Parameter(0, _LLDP, 2),
        "LLDP_NB_TX_MODE": Parameter(0, _LLDP, 2),
        "DCBX_WILLING": _flag(1),
        "KEEP_ETH_LINK_UP": _flag(1),
        "NUM_OF_TC": Parameter(0, ("_8_TCs", "_1_TC", "_2_TCs"), 2),
        "NUM_OF_PFC": Parameter(8, largest=8),
    }
    return {f"{name}_P{port}": parameter for name, parameter in found.items()}


def parameters(machine: Machine, ports: int) -> dict[str, Parameter]:
    """Every parameter of a machine's cards by name; `ports` is how many a card has."""
    return _parameters(machine.nic.total_vfs, machine.ethernet, ports)


@cache  # asked for each file of each VF
def _parameters(vfs: int, ethernet: bool, ports: int) -> dict[str, Parameter]:
    found = {
        "MEMIC_SIZE_LIMIT": Parameter(1, ("_0KB", "_256KB"), 1),
        "ADVANCED_PCI_SETTINGS": _flag(),
        "MAX_ACC_OUT_READ": Parameter(0, largest=128, hidden=True),
        "PCI_WR_ORDERING": Parameter(0, ("per_mkey", "force_relax"), 1),
        "ATS_ENABLED": _flag(),
        "NUM_OF_VFS": Parameter(vfs, largest=127),
        "SRIOV_EN": _flag(int(vfs > 0)),
        "NUM_PF_MSIX": Parameter(63, largest=2048),
        "NUM_VF_MSIX": Parameter(11, largest=2048),
        "ROCE_CONTROL": Parameter(2, ("DEVICE_DEFAULT", "ROCE_DISABLE", "ROCE_ENABLE"), 2),
        "ESWITCH_HAIRPIN_DESCRIPTORS": Parameter(length=8),
    }
    for port in range(1, ports + 1):
        found |= _per_port(port, ethernet)
    return found


@dataclass
class Card:
    """What differs from the defaults: running, and from the next reset on."""

    current: dict[str, int] = field(default_factory=dict)
    next: dict[str, int] = field(default_factory=dict)

    def reset(self) -> None:
        """The firmware starts anew."""
        self.current = dict(self.next)


def slot(place: PortPlace) -> str:
    """What identifies a card: the address of its ports without the function."""
    return place.pci.rsplit(".", 1)[0]
