"""Fingerprints of OpenPGP public keys (RFC 9580, section 5.5.4), so that a key is known by more than its file name."""

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator

PUBLIC_KEY = 6
V6 = 6


class KeyFormatError(ValueError):
    """Text that holds no OpenPGP public key."""


def fingerprints(armoured: str) -> tuple[str, ...]:
    """The fingerprints of the primary keys in ASCII armour, in upper case.

    Raises:
        KeyFormatError: it is none.
    """
    found = tuple(_fingerprint(body) for tag, body in _packets(_dearmoured(armoured)) if tag == PUBLIC_KEY)
    if not found:
        raise KeyFormatError("no public key in it")
    return found


def _fingerprint(body: bytes) -> str:
    if body[0] == V6:
        return hashlib.sha256(b"\x9b" + len(body).to_bytes(4, "big") + body).hexdigest().upper()
    # SHA-1 is what the version 4 format says; it names the key, and the key's file is compared byte for byte.
    return hashlib.sha1(b"\x99" + len(body).to_bytes(2, "big") + body).hexdigest().upper()  # noqa: S324


def _dearmoured(text: str) -> bytes:
    blocks = re.findall(r"-----BEGIN PGP PUBLIC KEY BLOCK-----\r?\n(.*?)-----END PGP", text, re.DOTALL)
    if not blocks:
        raise KeyFormatError("no ASCII armour around it")
    if text.count("-----BEGIN") != 1:  # package managers trust the keys of every block
        raise KeyFormatError("more than one block of ASCII armour")
    lines = blocks[0].replace("\r", "").split("\n")
    if "" in lines[:-1]:  # headers end at the empty line
        lines = lines[lines.index("") + 1 :]
    body = "".join(line.strip() for line in lines if not line.startswith("="))
    try:
        return base64.b64decode(body, validate=True)
    except binascii.Error as error:
        raise KeyFormatError(f"damaged: {error}") from error


def _packets(data: bytes) -> Iterator[tuple[int, bytes]]:
    at = 0
    try:
        while at < len(data):
            first = data[at]
            tag, start, length = _new(data, at) if first & 0x40 else _old(data, at)
            if not first & 0x80 or length <= 0 or start + length > len(data):
                raise KeyFormatError("damaged: a packet does not end where it says")
            yield tag, data[start : start + length]
            at = start + length
    except IndexError as error:
        raise KeyFormatError("damaged: it ends within a packet") from error


def _new(data: bytes, at: int) -> tuple[int, int, int]:
    """Tag, start and length of a packet in the current format (section 4.2.1)."""
    tag, first = data[at] & 0x3F, data[at + 1]
    if first < 192:  # noqa: PLR2004
        return tag, at + 2, first
    if first < 224:  # noqa: PLR2004
        return tag, at + 3, ((first - 192) << 8) + data[at + 2] + 192
    return tag, at + 6, int.from_bytes(data[at + 2 : at + 6], "big")


def _old(data: bytes, at: int) -> tuple[int, int, int]:
    """The same in the legacy format (section 4.2.2)."""
    size = 1 << (data[at] & 0x03)
    return (data[at] >> 2) & 0x0F, at + 1 + size, int.from_bytes(data[at + 1 : at + 1 + size], "big")
