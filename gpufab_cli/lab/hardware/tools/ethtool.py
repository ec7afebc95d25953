"""ethtool on the rails: pause, driver, counters and link. Other devices go to the real program."""

import errno
import json
import platform
import re
from collections.abc import Callable

from gpufab_cli.lab.hardware.model import Hardware, fail
from gpufab_cli.lab.hardware.state import PRIORITIES
from gpufab_cli.lab.hardware.tools.answer import Answer, Request

REAL = "/usr/sbin/ethtool.real"
# ethtool's exit status when the kernel refuses what it was told to set.
_NETLINK_ERROR_RC = 76
_VERBS = {
    "-a": "pause",
    "--show-pause": "pause",
    "-A": "set-pause",
    "--pause": "set-pause",
    "-i": "driver",
    "--driver": "driver",
    "-S": "statistics",
    "--statistics": "statistics",
}
_PRIO_RX = (
    "bytes",
    "packets",
    "discards",
    "pause",
    "pause_duration",
    "pause_transition",
    "buf_discard",
    "cong_discard",
)
_PRIO_TX = ("bytes", "packets", "pause", "pause_duration")


def answer(hw: Hardware, request: Request) -> Answer:
    """Answers one call."""
    words = [word for word in request.argv if word != "--json"]
    as_json = len(words) < len(request.argv)
    verb = _VERBS.get(words[0], "") if words else ""
    netdev = next((word for word in words if not word.startswith("-")), "")
    if hw.place(netdev) is None:
        return Answer(program=REAL)
    if verb == "set-pause":
        return _set_pause(hw, request, netdev, words[2:])
    if verb == "pause":
        return Answer(_pause_json(hw, netdev) if as_json else _pause(hw, netdev))
    show: Callable[[Hardware, str], str] | None = {"driver": _driver, "statistics": _statistics}.get(verb)
    if show is None and len(words) == 1:
        show = _link
    if show is None:
        return Answer(stderr="netlink error: Operation not supported\n", rc=1)
    return Answer(show(hw, netdev))


def _on_off(value: bool) -> str:
    return "on" if value else "off"


def _pause(hw: Hardware, netdev: str) -> str:
    port = hw.port(netdev)
    rows = (("Autonegotiate:\t", False), ("RX:\t\t", port.pause_rx), ("TX:\t\t", port.pause_tx))
    return f"Pause parameters for {netdev}:\n" + "".join(f"{name}{_on_off(value)}\n" for name, value in rows) + "\n"


def _pause_json(hw: Hardware, netdev: str) -> str:
    port = hw.port(netdev)
    rows = {"ifname": netdev, "autonegotiate": False, "rx": port.pause_rx, "tx": port.pause_tx}
    body = ",\n".join(f'        "{name}": {json.dumps(value)}' for name, value in rows.items())
    return f"[ {{\n{body}\n    }} ]\n"


def _set_pause(hw: Hardware, request: Request, netdev: str, words: list[str]) -> Answer:
    """What is no known pair goes to the real program, which complains before it does anything."""
    wanted = dict(zip(words[::2], words[1::2], strict=False))
    known = set(wanted) <= {"autoneg", "rx", "tx"} and set(wanted.values()) <= {"on", "off"}
    if not words or len(words) % 2 or not known:
        return Answer(program=REAL)
    try:
        if not request.is_root:
            raise fail(errno.EPERM)
        with hw.writes.write("ethtool", " ".join(request.argv), alive=request.alive):
            _apply_pause(hw, netdev, wanted)
    except OSError as error:
        return Answer(stderr=f"netlink error: {error.strerror}\n", rc=_NETLINK_ERROR_RC)
    return Answer()


def _apply_pause(hw: Hardware, netdev: str, wanted: dict[str, str]) -> None:
    """mlx5 has no pause autonegotiation: `on` is refused outright, `off` only after the rest is set."""
    if wanted.get("autoneg") == "on":
        raise fail(errno.EINVAL)
    port = hw.port(netdev)
    rx = wanted.get("rx", _on_off(port.pause_rx)) == "on"
    tx = wanted.get("tx", _on_off(port.pause_tx)) == "on"
    hw.set_pause(netdev, rx, tx)
    if "autoneg" in wanted:
        raise fail(errno.EOPNOTSUPP)


def _version(hw: Hardware) -> str:
    """A vendor's driver bears three parts of its stack's version; an inbox driver has none but the kernel's."""
    match = re.search(r"\d+\.\d+-\d+\.\d+\.\d+", hw.machine.stack.release)
    return match[0] if match else platform.release()


def _driver(hw: Hardware, netdev: str) -> str:
    place, nic = hw.place(netdev), hw.machine.nic
    rows = (
        ("driver", nic.driver),
        ("version", _version(hw)),
        ("firmware-version", f"{nic.firmware} ({nic.psid})"),
        ("expansion-rom-version", ""),
        ("bus-info", place.pci if place else ""),
        ("supports-statistics", "yes"),
        ("supports-test", "yes"),
        ("supports-eeprom-access", "no"),
        ("supports-register-dump", "no"),
        ("supports-priv-flags", "yes"),
    )
    return "".join(f"{name}: {value}\n" for name, value in rows)


def _statistics(hw: Hardware, netdev: str) -> str:
    counters = dict.fromkeys(("rx_out_of_buffer", "rx_vport_rdma_unicast_packets", "rx_vport_rdma_unicast_bytes"), 0)
    counters |= dict.fromkeys(("rx_discards_phy", "tx_discards_phy", "rx_pause_ctrl_phy", "tx_pause_ctrl_phy"), 0)
    counters["rx_discards_phy"] = hw.discards(netdev)
    counters["link_down_events_phy"] = hw.port(netdev).link_downs
    for priority in range(PRIORITIES):
        counters |= dict.fromkeys((f"rx_prio{priority}_{name}" for name in (*_PRIO_RX, "marked")), 0)
        counters |= dict.fromkeys((f"tx_prio{priority}_{name}" for name in _PRIO_TX), 0)
    counters |= dict.fromkeys(("tx_pause_storm_warning_events", "tx_pause_storm_error_events"), 0)
    return "NIC statistics:\n" + "".join(f"     {name}: {value}\n" for name, value in counters.items())


def _link(hw: Hardware, netdev: str) -> str:
    up = hw.live().admin_up(netdev) and hw.carrier(netdev)
    rows = (
        ("Supported ports", "[ FIBRE ]"),
        ("Supported pause frame use", "Symmetric"),
        ("Supports auto-negotiation", "Yes"),
        ("Advertised auto-negotiation", "Yes"),
        ("Speed", f"{hw.machine.nic.speed_gbps * 1000}Mb/s" if up else "Unknown!"),
        ("Duplex", "Full" if up else "Unknown! (255)"),
        ("Auto-negotiation", "on"),
        ("Port", "FIBRE"),
        ("PHYAD", "0"),
        ("Transceiver", "internal"),
        ("Link detected", "yes" if up else "no"),
    )
    return f"Settings for {netdev}:\n" + "".join(f"\t{name}: {value}\n" for name, value in rows)
