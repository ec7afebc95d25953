"""iproute2's rdma: links, devices, the system's mode and who holds queue pairs."""

import json
from collections.abc import Callable
from typing import Any

from gpufab_cli.lab.hardware import holders
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.sysfs.infiniband import FIRST_LID
from gpufab_cli.lab.hardware.tools.answer import Answer, Request, is_prefix, options
from gpufab_cli.lab.machine import PortPlace

REAL = "/usr/bin/rdma.real"
_OPTIONS = {"-j": "j", "--json": "j", "-p": "p", "--pretty": "p", "-d": "d", "--details": "d", "-r": "r", "--raw": "r"}
_SYSTEM = "netns shared privileged-qkey off monitor on copy-on-fork on\n"
Row = dict[str, Any]


def answer(hw: Hardware, request: Request) -> Answer:
    """Answers one call; what only shows help goes to the real program."""
    given, words, unknown = options(request.argv, _OPTIONS)
    if unknown or not words or is_prefix(words[0], "help") or "help" in words[1:]:
        return Answer(program=REAL)
    if is_prefix(words[0], "system"):
        return Answer(_SYSTEM)  # with -j too: iproute2 has no JSON for it
    return _list(hw, words, "j" in given)


def _list(hw: Hardware, words: list[str], as_json: bool) -> Answer:
    tables: dict[str, tuple[Callable[[Hardware, str], list[Row]], Callable[[Row], str]]] = {
        "dev": (_devices, _device_text),
        "link": (_links, _link_text),
        "resource": (_queue_pairs, _queue_pair_text),
    }
    kind = next((name for name in tables if is_prefix(words[0], name)), None)
    rest = words[1:]
    if rest and is_prefix(rest[0], "show"):
        rest = rest[1:]
    if kind is None:
        return Answer(stderr=f"Unknown argument '{words[0]}'.\n", rc=1)
    if kind == "resource":
        if rest[:1] != ["qp"]:
            return Answer(stderr=f"Unknown argument '{rest[0] if rest else ''}'.\n", rc=1)
        rest = rest[1:]
        rest = rest[1:] if rest[:1] == ["link"] else rest
    device = rest[0].split("/", 1)[0] if rest else ""
    if device and device not in (port.rdma for port in hw.machine.ports):
        return Answer(stderr="Wrong device name\n", rc=1)
    read, text = tables[kind]
    rows = read(hw, device)
    return Answer(_json(rows) if as_json else "".join(f"{text(row)} \n" for row in rows))


def _json(rows: list[Row]) -> str:
    """A list as iproute2's rdma lays it out: a line end after each element, the comma before the next."""
    return "[" + ",".join(json.dumps(row, separators=(",", ":")) + "\n" for row in rows) + "]\n"


def _links(hw: Hardware, device: str) -> list[Row]:
    rows: list[Row] = []
    for index, place in enumerate(hw.machine.ports):
        if not place.rdma or device not in ("", place.rdma):
            continue
        up = hw.live().admin_up(place.netdev) and hw.carrier(place.netdev)
        state = {"state": "ACTIVE" if up else "DOWN", "physical_state": "LINK_UP" if up else "DISABLED"}
        rows.append(
            {"ifindex": index, "ifname": place.rdma, "port": 1} | _fabric(hw, index) | state | _netdev(hw, place)
        )
    return rows


def _fabric(hw: Hardware, index: int) -> Row:
    """What an InfiniBand port knows of its subnet."""
    if hw.machine.is_ethernet(hw.machine.ports[index]):
        return {}
    return {"subnet_prefix": "fe80:0000:0000:0000", "lid": FIRST_LID + index, "sm_lid": 1, "lmc": 0}


def _netdev(hw: Hardware, place: PortPlace) -> Row:
    """The netdev of an Ethernet port, of a bond that of its active port; IPoIB's is not told."""
    if not hw.machine.is_ethernet(place):
        return {}
    return {"netdev": place.netdev, "netdev_index": hw.live().index(place.netdev)}


def _link_text(row: Row) -> str:
    fields = ("subnet_prefix", "lid", "sm_lid", "lmc", "state", "physical_state", "netdev")
    words = (f"link {row['ifname']}/{row['port']}", *(f"{key} {row[key]}" for key in fields if key in row))
    return " ".join(words)


def _devices(hw: Hardware, device: str) -> list[Row]:
    rows: list[Row] = []
    for index, place in enumerate(hw.machine.ports):
        guid = hw.identity.guid(index)
        rows.append(
            {
                "ifindex": index,
                "ifname": place.rdma,
                "node_type": "ca",
                "protocol": "roce" if hw.machine.is_ethernet(place) else "ib",
                "fw": hw.machine.nic.firmware,
                "node_guid": guid,
                "sys_image_guid": guid,
            }
        )
    return [row for row in rows if row["ifname"] and device in ("", row["ifname"])]


def _device_text(row: Row) -> str:
    fields = ("node_type", "protocol", "fw", "node_guid", "sys_image_guid")
    return " ".join((f"{row['ifindex']}: {row['ifname']}:", *(f"{key} {row[key]}" for key in fields)))


def _queue_pairs(hw: Hardware, device: str) -> list[Row]:
    """One queue pair for each process that holds a verbs device open."""
    rows: list[Row] = []
    for number, holder in enumerate(holders.of_verbs(hw)):
        place = hw.machine.ports[holder.index]
        rows.append(
            {
                "ifindex": holder.index,
                "ifname": place.rdma,
                "port": 1,
                "lqpn": 300 + number,
                "rqpn": 400 + number,
                "type": "RC",
                "state": "RTS",
                "rq-psn": 0,
                "sq-psn": 0,
                "path-mig-state": "MIGRATED",
                "pid": holder.pid,
                "comm": holder.comm,
            }
        )
    return [row for row in rows if device in ("", row["ifname"])]


def _queue_pair_text(row: Row) -> str:
    fields = ("lqpn", "rqpn", "type", "state", "rq-psn", "sq-psn", "path-mig-state", "pid", "comm")
    return " ".join((f"link {row['ifname']}/{row['port']}", *(f"{key} {row[key]}" for key in fields)))
