"""The part of ``ip link`` that a veth cannot do: VF lines of a physical function, and what sets them."""

import json
import re
from collections.abc import Callable
from typing import Any

from gpufab_cli.lab.hardware import sriov
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.tools.answer import Answer, Request
from gpufab_cli.lab.hardware.vf_state import Vf
from gpufab_cli.lab.machine import PortPlace

_IPOIB = "00:00:00:00:fe:80:00:00:00:00:00:00"
_IB_BROADCAST = "00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff"
_OPTIONS = re.compile(r"-[a-z0-9]+|--[a-z]+")
_STATES = ("auto", "enable", "disable")


def _on(text: str) -> bool:
    return {"on": True, "off": False}[text]


def _state(text: str) -> str:
    return _STATES[_STATES.index(text)]


# Keyword, the setting, and how its value reads; a wrong value raises ValueError or KeyError.
_WORDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "mac": ("mac", str.lower),
    "node_guid": ("node_guid", str.lower),
    "port_guid": ("port_guid", str.lower),
    "vlan": ("vlan", int),
    "qos": ("vlan_qos", int),
    "rate": ("max_tx_mbps", int),
    "max_tx_rate": ("max_tx_mbps", int),
    "min_tx_rate": ("min_tx_mbps", int),
    "spoofchk": ("spoofchk", _on),
    "trust": ("trust", _on),
    "query_rss": ("query_rss", _on),
    "state": ("state", _state),
}


def answer(hw: Hardware, request: Request) -> Answer | None:
    """Answers a call that is about VFs; None for any other."""
    words = [word for word in request.argv if not _OPTIONS.fullmatch(word)]
    if words[:1] not in (["link"], ["l"]):
        return None
    names = [word for word in words if hw.place(word) is not None]
    place = hw.place(names[0]) if names else None
    if place is None:
        return None
    if "set" in words and "vf" in words:
        return _set(hw, request, place, words[words.index("vf") + 1 :])
    shows = not {"set", "add", "del", "delete"} & set(words)
    return _show(hw, request, place) if shows and hw.port(place.netdev).sriov.vfs else None


def _set(hw: Hardware, request: Request, place: PortPlace, words: list[str]) -> Answer:
    try:
        index = int(words[0])
        values = {_WORDS[key][0]: _WORDS[key][1](text) for key, text in zip(words[1::2], words[2::2], strict=True)}
    except (ValueError, KeyError, IndexError):
        return Answer(stderr='Error: argument "vf" is wrong: Invalid "vf" value\n', rc=255)
    if not request.is_root:
        return Answer(stderr="RTNETLINK answers: Operation not permitted\n", rc=2)
    try:
        with hw.writes.write("ip", " ".join(request.argv), alive=request.alive):
            sriov.set_vf(hw, place, index, values)
    except OSError as error:
        return Answer(stderr=f"RTNETLINK answers: {error.strerror}\n", rc=2)
    return Answer()


def _show(hw: Hardware, request: Request, place: PortPlace) -> Answer:
    """What the real program says of the netdev, with its VFs in the place where they belong."""
    said = hw.live().ip(*request.argv)
    vfs = hw.port(place.netdev).sriov.vfs
    try:
        rows = json.loads(said)
    except ValueError:
        end = "\\" if {"-o", "-oneline"} & set(request.argv) else "\n"  # what separates the lines of one interface
        lines = said.rstrip("\n").split(end)
        ours = [f"    vf {index}     {_text(hw, place, vf)}" for index, vf in enumerate(vfs)]
        at = next((i + 1 for i, line in enumerate(lines) if line.lstrip().startswith("link/")), len(lines))
        return Answer(end.join([*lines[:at], *ours, *lines[at:]]) + "\n")
    for row in rows:
        if row.get("ifname") == place.netdev:
            row["vfinfo_list"] = [_row(hw, place, index, vf) for index, vf in enumerate(vfs)]
    return Answer(json.dumps(rows, separators=(",", ":")) + "\n")


def _row(hw: Hardware, place: PortPlace, index: int, vf: Vf) -> dict[str, Any]:
    """One entry of vfinfo_list; the GUIDs' keys hold a space."""
    ethernet = hw.machine.is_ethernet(place)
    vlan = {"vlan": vf.vlan, "qos": vf.vlan_qos} if vf.vlan_qos else {"vlan": vf.vlan} if vf.vlan else {}
    guids = {} if ethernet else {"node guid": vf.node_guid, "port guid": vf.port_guid}
    return {
        "vf": index,
        "link_type": "ether" if ethernet else "infiniband",
        "address": vf.mac if ethernet else f"{_IPOIB}:{vf.port_guid}",
        "broadcast": "ff:ff:ff:ff:ff:ff" if ethernet else _IB_BROADCAST,
        "vlan_list": [vlan],
        "rate": {"max_tx": vf.max_tx_mbps, "min_tx": vf.min_tx_mbps},
        "spoofchk": vf.spoofchk,
        **guids,
        "link_state": vf.state,
        "trust": vf.trust,
        "query_rss_en": vf.query_rss,
    }


def _text(hw: Hardware, place: PortPlace, vf: Vf) -> str:
    """A VF line of `ip link show`."""

    def on(flag: bool) -> str:
        return "on" if flag else "off"

    row = _row(hw, place, 0, vf)
    words = [f"link/{row['link_type']} {row['address']} brd {row['broadcast']}"]
    words += [f"vlan {vf.vlan}"] if vf.vlan else []
    words += [f"qos {vf.vlan_qos}"] if vf.vlan_qos else []
    words += [f"max_tx_rate {vf.max_tx_mbps}Mbps"] if vf.max_tx_mbps else []
    words += [f"min_tx_rate {vf.min_tx_mbps}Mbps"] if vf.min_tx_mbps else []
    words.append(f"spoof checking {on(vf.spoofchk)}")
    words += [] if hw.machine.is_ethernet(place) else [f"NODE_GUID {vf.node_guid}", f"PORT_GUID {vf.port_guid}"]
    words += [f"link-state {vf.state}", f"trust {on(vf.trust)}", f"query_rss {on(vf.query_rss)}"]
    return ", ".join(words)
