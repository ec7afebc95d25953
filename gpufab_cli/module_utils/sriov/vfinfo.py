"""VF settings through the physical function's netdev: ``ip -d -j link show`` and ``ip link set … vf``.

Grammar: iproute2 ip/ipaddress.c (``print_vfinfo``) and ip/iplink.c. Keys for GUIDs hold a space. What the driver does
not tell has no key.
"""

from typing import Any, Callable, Dict, List, Mapping, Tuple, Union

from ..change import ABSENT, Unknown
from ..host import Host, Reader
from ..identity import plain_guid
from ..texts import parse_json
from .seen import ATTRIBUTES

Info = Dict[str, Any]
"""A VF's settings by the names of :data:`~.seen.ATTRIBUTES`."""


def read(host: Reader, netdev: str) -> Union[Tuple[Info, ...], Unknown]:
    """The settings of each VF of a netdev, by index; () where the list of them is there and empty."""
    output = host.query("ip", "-d", "-j", "link", "show", "dev", netdev)
    if isinstance(output, Unknown):
        return output
    if output.rc != 0:
        return Unknown(f"ip link show dev {netdev}: {output.error}")
    try:
        rows = parse_json(output.stdout)[0]["vfinfo_list"]
        return tuple(_info(row) for row in sorted(rows, key=lambda row: int(row["vf"])))
    except (ValueError, LookupError, TypeError, AttributeError):
        return Unknown(f"ip link show dev {netdev}: printed what no known release prints")


def _info(row: Mapping[str, Any]) -> Info:
    # A kernel before 4.9 has no list of VLANs, one before 3.16 no object of rates: iproute2 then prints the one VLAN
    # and the one rate in the row itself, zeros left out.
    vlan = row["vlan_list"][0] if "vlan_list" in row else row
    rate = row["rate"] if "rate" in row else {"max_tx": row.get("tx_rate", 0), "min_tx": 0}
    infiniband = row.get("link_type") == "infiniband"
    return {
        "mac": ABSENT if infiniband else _text(row, "address"),
        "node_guid": _guid(row, "node guid"),
        "port_guid": _guid(row, "port guid"),
        "vlan": int(vlan.get("vlan", 0)),
        "vlan_qos": int(vlan.get("qos", 0)),
        "max_tx_mbps": int(rate["max_tx"]),
        "min_tx_mbps": int(rate["min_tx"]),
        "spoofchk": _flag(row, "spoofchk"),
        "trust": _flag(row, "trust"),
        "link_state": _text(row, "link_state"),
    }


def _text(row: Mapping[str, Any], key: str) -> Any:
    return row[key] if isinstance(row.get(key), str) else Unknown(f"the driver does not tell a VF's {key}")


def _flag(row: Mapping[str, Any], key: str) -> Any:
    return row[key] if isinstance(row.get(key), bool) else Unknown(f"the driver does not tell a VF's {key}")


def _guid(row: Mapping[str, Any], key: str) -> Any:
    return plain_guid(row[key]) if key in row else ABSENT


def unknown(reason: Unknown) -> Info:
    """The settings of a VF that nothing is known of."""
    return dict.fromkeys(ATTRIBUTES, reason)


def write(host: Host, netdev: str, index: int, info: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Set what ``info`` holds; what goes by pairs (VLAN and its priority, the rates) is filled up from ``now``."""
    whole = {**now, **info}
    for names, words in _SETTERS:
        if any(name in info for name in names):
            host.run("ip", "link", "set", "dev", netdev, "vf", str(index), *words(whole))


def _on(flag: bool) -> str:
    return "on" if flag else "off"


_SETTERS: Tuple[Tuple[Tuple[str, ...], Callable[[Mapping[str, Any]], List[str]]], ...] = (
    (("mac",), lambda v: ["mac", v["mac"]]),
    (("node_guid",), lambda v: ["node_guid", v["node_guid"]]),
    (("port_guid",), lambda v: ["port_guid", v["port_guid"]]),
    (("vlan", "vlan_qos"), lambda v: ["vlan", str(v["vlan"]), "qos", str(v["vlan_qos"])]),
    (
        ("max_tx_mbps", "min_tx_mbps"),
        lambda v: ["max_tx_rate", str(v["max_tx_mbps"]), "min_tx_rate", str(v["min_tx_mbps"])],
    ),
    (("spoofchk",), lambda v: ["spoofchk", _on(v["spoofchk"])]),
    (("trust",), lambda v: ["trust", _on(v["trust"])]),
    (("link_state",), lambda v: ["state", v["link_state"]]),
)
