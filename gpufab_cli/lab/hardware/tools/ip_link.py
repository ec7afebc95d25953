"""``ip link`` of the rails: what the real program says of a veth, told as of a PCI function with VFs.

Grammar: iproute2 ip/ipaddress.c, print_linkinfo and print_vfinfo. A driver that knows VFs has a list of them also while
there is none; who is the parent is told with ``-d`` alone.
"""

import json
import re
from itertools import dropwhile
from typing import Any

from gpufab_cli.lab.errors import LabError
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.tools import ip_vf
from gpufab_cli.lab.hardware.tools.answer import Answer, Request, is_prefix
from gpufab_cli.lab.hardware.vf_state import Vf
from gpufab_cli.lab.machine import PortPlace

_IPOIB = "00:00:00:00:fe:80:00:00:00:00:00:00"
_IB_BROADCAST = "00:ff:ff:ff:ff:12:40:1b:ff:ff:00:00:00:00:00:00:ff:ff:ff:ff"
_SHOW = ("show", "lst", "list")
_CABLE = ("link", "link_index", "link_netnsid", "linkinfo")
"""What only a veth has."""


def answer(hw: Hardware, request: Request) -> Answer | None:
    """Answers a call that is about rails; None for any other, which is the real program's."""
    words = list(dropwhile(lambda word: word.startswith("-"), request.argv))  # options stand before the object
    if not (words and is_prefix(words[0], "link")):
        return None
    rest = [word for word in words[1:] if word != "dev"]
    if len(rest) > 1 and rest[0] == "set" and rest[2:3] == ["vf"]:
        place, wanted = hw.place(rest[1]), ip_vf.parse(words[words.index("vf") :])
        if place is None:
            return None
        return ip_vf.set_vfs(hw, request, place, wanted) if wanted else Answer(program=ip_vf.REAL)
    if rest and any(is_prefix(rest[0], verb) for verb in (*_SHOW, "ls")) and hw.place(rest[0]) is None:
        del rest[0]
    rails = {hw.place(word) for word in rest}
    return _show(hw, request) if None not in rails and len(rest) <= 1 else None


def _show(hw: Hardware, request: Request) -> Answer | None:
    try:
        said = hw.live().ip(*request.argv)
    except LabError:
        return None
    detailed = any(re.fullmatch(r"-d(e(t(a(i(ls?)?)?)?)?)?|--details", word) for word in request.argv)
    try:
        rows = json.loads(said)
    except ValueError:
        one_line = bool({"-o", "-oneline", "--oneline"} & set(request.argv))
        return Answer(_texts(hw, said, "\\" if one_line else "\n", detailed))
    shown = [_row(hw, row, detailed) for row in rows]
    return Answer(json.dumps(shown, separators=(",", ":")) + "\n")


def _row(hw: Hardware, row: dict[str, Any], detailed: bool) -> dict[str, Any]:
    """One interface of the JSON; keys in the order in which iproute2 prints them."""
    place = hw.place(row.get("ifname", ""))
    if place is None:
        return row
    vfs = hw.port(place.netdev).sriov.vfs
    parent = {"parentbus": "pci", "parentdev": place.pci} if detailed else {}
    last = ("stats64", "stats", "altnames")
    ends = {name: row[name] for name in last if name in row}
    altnames = {"altnames": ends.pop("altnames")} if "altnames" in ends else {}
    rest = {name: value for name, value in row.items() if name not in (*last, *_CABLE, *parent)}
    listed = [_vf(hw, place, index, vf) for index, vf in enumerate(vfs)]
    return {**rest, **parent, **ends, "vfinfo_list": listed, **altnames}


def _texts(hw: Hardware, said: str, end: str, detailed: bool) -> str:
    """The text, interface by interface; ``end`` is what separates the lines of one."""
    blocks = re.split(r"^(?=[0-9]+: )", said, flags=re.MULTILINE)
    return "".join(_text(hw, block, end, detailed) for block in blocks)


def _text(hw: Hardware, block: str, end: str, detailed: bool) -> str:
    name = re.match(r"[0-9]+: ([^:@]+)", block)
    place = hw.place(name[1]) if name else None
    if place is None:
        return block
    first, *lines = block.rstrip("\n").split(end)
    at = next((number for number, line in enumerate(lines) if line.lstrip().startswith("altname ")), len(lines))
    head, tail = lines[:at], lines[at:]
    if len(head) > 1 and head[1].lstrip().startswith("veth"):  # the kind of link, and the details behind it
        head[:2] = [head[0].rstrip() + " " + head[1].lstrip().removeprefix("veth").lstrip()]
    if head:
        head[0] = re.sub(r" link-netnsid [0-9]+| link-netns \S+", "", head[0])
        head[0] = head[0].rstrip() + f" parentbus pci parentdev {place.pci} " if detailed else head[0]
    ours = [f"    vf {index}     {_vf_text(hw, place, vf)}" for index, vf in enumerate(hw.port(place.netdev).sriov.vfs)]
    return end.join([re.sub(r"^([0-9]+: [^:@]+)@[^:]+", r"\1", first), *head, *ours, *tail]) + "\n"


def _vf(hw: Hardware, place: PortPlace, index: int, vf: Vf) -> dict[str, Any]:
    """One entry of vfinfo_list; the GUIDs' keys hold a space."""
    ethernet = hw.machine.is_ethernet(place)
    vlan = {name: value for name, value in (("vlan", vf.vlan), ("qos", vf.vlan_qos)) if value}
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


def _vf_text(hw: Hardware, place: PortPlace, vf: Vf) -> str:
    """A VF's line."""

    def on(flag: bool) -> str:
        return "on" if flag else "off"

    row = _vf(hw, place, 0, vf)
    words = [f"link/{row['link_type']} {row['address']} brd {row['broadcast']}"]
    words += [f"vlan {vf.vlan}"] if vf.vlan else []
    words += [f"qos {vf.vlan_qos}"] if vf.vlan_qos else []
    words += [f"max_tx_rate {vf.max_tx_mbps}Mbps"] if vf.max_tx_mbps else []
    words += [f"min_tx_rate {vf.min_tx_mbps}Mbps"] if vf.min_tx_mbps else []
    words.append(f"spoof checking {on(vf.spoofchk)}")
    words += [] if hw.machine.is_ethernet(place) else [f"NODE_GUID {vf.node_guid}", f"PORT_GUID {vf.port_guid}"]
    words += [f"link-state {vf.state}", f"trust {on(vf.trust)}", f"query_rss {on(vf.query_rss)}"]
    return ", ".join(words)
