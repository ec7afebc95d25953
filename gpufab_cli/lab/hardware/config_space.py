"""PCI Express configuration space of a function, as far as anybody reads it (PCI Express Base Specification, 7.5-7.7).

Registers that are not kept here read as reset and take no writes.
"""

import struct

from gpufab_cli.lab.hardware.model import Hardware

SIZE, HEADER = 4096, 64
_POWER, _EXPRESS = 0x40, 0x60
_ERRORS, _ACS = 0x100, 0x148
_DEVICE_CONTROL = _EXPRESS + 8
_ACS_CONTROL = _ACS + 6
_CONTROL = 0x0936  # relaxed ordering, extended tags, no snoop, payload of 256 bytes
REQUEST_DEFAULT = 2  # 512 bytes
ENDPOINT, ROOT_PORT, UPSTREAM, DOWNSTREAM = 0, 4, 5, 6
FLAGS = ("SrcValid", "TransBlk", "ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl", "DirectTrans")
ABLE = 0b1011111  # all but egress control
FIRMWARE = 0b0011101  # what firmware leaves on: SrcValid, ReqRedir, CmpltRedir, UpstreamFwd


def acs(hw: Hardware, pci: str) -> int:
    """The ACS control register of a root port or downstream port."""
    return hw.state.numa.acs.get(pci, FIRMWARE)


def request(hw: Hardware, pci: str) -> int:
    """The largest read request in bytes."""
    return 128 << hw.state.numa.read_request.get(pci, REQUEST_DEFAULT)


def read(hw: Hardware, pci: str, ids: tuple[str, str, str], kind: int) -> bytes:
    """All of it; `ids` are vendor, device and class."""
    data = bytearray(SIZE)
    vendor, device, code = (int(text, 16) for text in ids)
    bridge = kind != ENDPOINT
    struct.pack_into("<HHHH", data, 0, vendor, device, 0x0406, 0x0010)
    struct.pack_into("<I", data, 8, code << 8)
    data[0x0E], data[0x34] = int(bridge), _POWER
    struct.pack_into("<BBH", data, _POWER, 0x01, _EXPRESS, 3)
    struct.pack_into("<BBH", data, _EXPRESS, 0x10, 0, 2 | kind << 4)
    code = hw.state.numa.read_request.get(pci, REQUEST_DEFAULT)
    struct.pack_into("<H", data, _DEVICE_CONTROL, _CONTROL | code << 12)
    has_acs = kind in (ROOT_PORT, DOWNSTREAM)
    struct.pack_into("<I", data, _ERRORS, 0x0001 | 1 << 16 | (_ACS if has_acs else 0) << 20)
    if has_acs:
        struct.pack_into("<IHH", data, _ACS, 0x000D | 1 << 16, ABLE, acs(hw, pci))
    return bytes(data)


def write(hw: Hardware, pci: str, old: bytes, offset: int, written: bytes) -> None:
    """Takes a write of any length: what a register cannot hold is lost without a word."""
    data = bytearray(old)
    data[offset : offset + len(written)] = written
    code = struct.unpack_from("<H", data, _DEVICE_CONTROL)[0] >> 12 & 7
    control = struct.unpack_from("<H", data, _ACS_CONTROL)[0] & struct.unpack_from("<H", old, _ACS + 4)[0]

    def edit() -> None:
        hw.state.numa.read_request[pci] = code
        if struct.unpack_from("<H", old, _ACS)[0]:
            hw.state.numa.acs[pci] = control

    hw.edit(edit)


def flags(control: int) -> str:
    """The bits as lspci writes them."""
    return " ".join(f"{name}{'+' if control >> bit & 1 else '-'}" for bit, name in enumerate(FLAGS))
