"""What ``ip link set … vf`` sets, which a veth cannot.

Grammar: iproute2 ip/iplink.c, iplink_parse_vf. Keywords may be cut short. What does not parse goes to the real program,
which complains in its own words and ends with its own status before it does anything.
"""

import re
from collections.abc import Callable, Sequence
from typing import Any

from gpufab_cli.lab.hardware import sriov
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.tools.answer import Answer, Request, is_prefix
from gpufab_cli.lab.machine import PortPlace

REAL = "/usr/bin/ip.real"
_STATES = ("auto", "enable", "disable")
_LAST_VLAN = 4095
_U32 = 2**32 - 1
_MAC = re.compile(r"[0-9a-fA-F]{1,2}(?::[0-9a-fA-F]{1,2}){5}")
_GUID = re.compile(r"[0-9a-fA-F]{2}(?::[0-9a-fA-F]{2}){7}")


def _octets(pattern: re.Pattern[str], text: str) -> str:
    if not pattern.fullmatch(text):
        raise ValueError(text)
    return ":".join(octet.zfill(2) for octet in text.lower().split(":"))


def _mac(text: str) -> str:
    return _octets(_MAC, text)


def _guid(text: str) -> str:
    return _octets(_GUID, text)


def _number(text: str, last: int = _U32) -> int:
    """A number as strtoul reads it with base 0."""
    number = int(text, 8 if re.fullmatch("0[0-7]+", text) else 0)
    if not 0 <= number <= last:
        raise ValueError(text)
    return number


def _vlan(text: str) -> int:
    return _number(text, _LAST_VLAN)


def _on(text: str) -> bool:
    return {"on": True, "off": False}[text]


def _state(text: str) -> str:
    return next(state for state in _STATES if is_prefix(text, state))


# In the order in which iplink.c tries them: the first that a word begins is meant. A wrong value raises.
_WORDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "mac": ("mac", _mac),
    "vlan": ("vlan", _vlan),
    "rate": ("max_tx_mbps", _number),
    "max_tx_rate": ("max_tx_mbps", _number),
    "min_tx_rate": ("min_tx_mbps", _number),
    "spoofchk": ("spoofchk", _on),
    "query_rss": ("query_rss", _on),
    "trust": ("trust", _on),
    "state": ("state", _state),
    "node_guid": ("node_guid", _guid),
    "port_guid": ("port_guid", _guid),
}


def parse(words: Sequence[str]) -> list[tuple[int, dict[str, Any]]] | None:
    """The VFs and what is wanted of each, of the words from ``vf`` on; None for what the real program does not take."""
    found: list[tuple[int, dict[str, Any]]] = []
    left = list(words)
    try:
        while left:
            if left.pop(0) != "vf":
                return None
            index, values = int(left.pop(0), 0), _values(left)
            if not values:
                return None
            found.append((index, values))
    except (ValueError, KeyError, IndexError, StopIteration):
        return None
    return found


def _values(left: list[str]) -> dict[str, Any]:
    """Takes the settings of one VF."""
    values: dict[str, Any] = {}
    while left and left[0] != "vf":
        keyword = next(full for full in _WORDS if is_prefix(left[0], full))
        name, read = _WORDS[keyword]
        values[name] = read(left[1])
        del left[:2]
        if keyword == "vlan":  # its priority stands right behind it, and is 0 where it does not
            values["vlan_qos"] = 0
            if left and is_prefix(left[0], "qos"):
                values["vlan_qos"] = _number(left[1])
                del left[:2]
    return values


def set_vfs(hw: Hardware, request: Request, place: PortPlace, wanted: Sequence[tuple[int, dict[str, Any]]]) -> Answer:
    """Does it, or answers as the kernel would."""
    if not request.is_root:
        return Answer(stderr="RTNETLINK answers: Operation not permitted\n", rc=2)
    try:
        with hw.writes.write("ip", " ".join(request.argv), alive=request.alive):
            for index, values in wanted:
                sriov.set_vf(hw, place, index, values)
    except OSError as error:
        return Answer(stderr=f"RTNETLINK answers: {error.strerror}\n", rc=2)
    return Answer()
