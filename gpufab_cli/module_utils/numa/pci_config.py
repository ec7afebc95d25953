"""PCI Express configuration space: read requests and access control services (ACS), read and set bit by bit.

Layout: PCI Express Base Specification, chapter 7; names and offsets as in Linux' uapi/linux/pci_regs.h.
"""

import struct
from typing import Iterable, Optional, Tuple, Union

from ..change import ABSENT, Absent, Unknown
from ..devices import PCI_DEVICES
from ..host import Host, HostError, Reader
from .seen import BridgeSeen, Number

STATUS, CAPABILITY_LIST, FIRST = 0x06, 0x10, 0x34
EXPRESS, EXTENDED_ACS = 0x10, 0x000D
DEVICE_CONTROL = 8  # within the PCI Express capability
READ_REQUEST_SHIFT, READ_REQUEST_BITS, SMALLEST_REQUEST = 12, 0x7000, 128
ACS_CAPABILITY, ACS_CONTROL = 4, 6  # within the ACS capability
PLAIN, CONVENTIONAL, EXTENDED = 64, 256, 4096  # bytes: what anybody may read, what PCI has, what PCI Express has

KINDS = {4: "root-port", 5: "upstream", 6: "downstream"}
"""Device/port type of the PCI Express capabilities register, of those that are bridges."""
FLAGS = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")
"""The bits of ACS from the lowest, as lspci calls them."""

Config = Union[bytes, Unknown]


def read(host: Reader, pci: str) -> Config:
    """The configuration space of a function; without root's rights only a header is shown, which does not do."""
    data = host.read_bytes(f"{PCI_DEVICES}/{pci}/config")
    if isinstance(data, Absent):
        return Unknown(f"{pci}: the kernel shows no configuration space")
    if isinstance(data, Unknown):
        return data
    if data[:4] == b"\xff" * 4:
        return Unknown(f"{pci} does not answer")
    return data if len(data) >= CONVENTIONAL else Unknown(f"{pci}: only root may read its configuration space")


def _word(data: bytes, offset: int) -> int:
    return int(struct.unpack_from("<H", data, offset)[0]) if offset + 2 <= len(data) else 0


def capability(data: bytes, wanted: int) -> Optional[int]:
    """Where a capability is; None where there is none."""
    place = data[FIRST] & ~3 if _word(data, STATUS) & CAPABILITY_LIST else 0
    for _ in range(CONVENTIONAL // 4):  # a broken list may run in a circle
        if not PLAIN <= place < CONVENTIONAL:
            return None
        if data[place] == wanted:
            return place
        place = data[place + 1] & ~3
    return None


def extended(data: bytes, wanted: int) -> Optional[int]:
    """Where an extended capability is; None where there is none."""
    place = CONVENTIONAL
    for _ in range(EXTENDED // 8):
        if not CONVENTIONAL <= place <= len(data) - 8:
            return None
        header = int(struct.unpack_from("<I", data, place)[0])
        if header & 0xFFFF == wanted:
            return place
        place = header >> 20 & ~3
    return None


def max_read_request(host: Reader, pci: str) -> Number:
    """The largest read request of a function in bytes; ABSENT where it is no PCI Express function."""
    data = read(host, pci)
    if isinstance(data, Unknown):
        return data
    place = capability(data, EXPRESS)
    if place is None:
        return ABSENT
    return SMALLEST_REQUEST << (_word(data, place + DEVICE_CONTROL) >> READ_REQUEST_SHIFT & 7)


def set_max_read_request(host: Host, pci: str, size: int) -> None:
    """Set it, and leave the other bits of the register as they are."""
    data = _data(host, pci)
    place = capability(data, EXPRESS)
    if place is None:
        raise HostError(f"{pci} is no PCI Express function")
    old = _word(data, place + DEVICE_CONTROL)
    code = (size // SMALLEST_REQUEST).bit_length() - 1
    _write(host, pci, place + DEVICE_CONTROL, old & ~READ_REQUEST_BITS | code << READ_REQUEST_SHIFT)


def bridge(host: Reader, pci: str) -> BridgeSeen:
    """What kind of port a bridge is, and its ACS."""
    data = read(host, pci)
    if isinstance(data, Unknown):
        return BridgeSeen(data, data, data)
    express = capability(data, EXPRESS)
    kind = KINDS.get(_word(data, express + 2) >> 4 & 0xF, "other") if express is not None else "other"
    if len(data) <= CONVENTIONAL:
        reason = Unknown(f"{pci}: the kernel shows no extended configuration space")
        return BridgeSeen(kind, reason, reason)
    place = extended(data, EXTENDED_ACS)
    if place is None:
        return BridgeSeen(kind, ABSENT, ABSENT)
    return BridgeSeen(kind, _flags(_word(data, place + ACS_CAPABILITY)), _flags(_word(data, place + ACS_CONTROL)))


def _flags(word: int) -> Tuple[str, ...]:
    return tuple(name for bit, name in enumerate(FLAGS) if word >> bit & 1)


def set_acs(host: Host, pci: str, wanted: Iterable[str]) -> None:
    """Turn on the ACS controls that are wanted, and all others off."""
    data = _data(host, pci)
    place = extended(data, EXTENDED_ACS)
    if place is None:
        raise HostError(f"{pci} has no ACS")
    every = (1 << len(FLAGS)) - 1
    bits = sum(1 << FLAGS.index(name) for name in wanted)
    _write(host, pci, place + ACS_CONTROL, _word(data, place + ACS_CONTROL) & ~every | bits)


def _data(host: Host, pci: str) -> bytes:
    data = read(host, pci)
    if isinstance(data, Unknown):
        raise HostError(data.reason)
    return data


def _write(host: Host, pci: str, offset: int, word: int) -> None:
    host.patch(f"{PCI_DEVICES}/{pci}/config", offset, struct.pack("<H", word))
