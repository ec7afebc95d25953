"""Virtual functions: as many as declared, with their addresses and settings, and no RDMA device without a GUID."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from gpufab_cli.verify.compare import compare, settled
from gpufab_cli.verify.expected import Node
from gpufab_cli.verify.reading import NONE, Reading, UnreadableError, number, told

pytestmark = pytest.mark.wishes("sriov", "ports")
NO_GUID = "0000:0000:0000:0000"

# How `ip link show` prints each setting of a VF; zero rates and VLANs are not printed at all.
PATTERNS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "mac": (r"link/ether (\S+)", str),
    "node_guid": (r"NODE_GUID ([0-9a-f:]+)", str),
    "port_guid": (r"PORT_GUID ([0-9a-f:]+)", str),
    "vlan": (r"\bvlan (\d+)", int),
    "vlan_qos": (r"\bqos (\d+)", int),
    "max_tx_mbps": (r"max_tx_rate (\d+)Mbps", int),
    "min_tx_mbps": (r"min_tx_rate (\d+)Mbps", int),
    "spoofchk": (r"spoof checking (on|off)", lambda word: word == "on"),
    "trust": (r"trust (on|off)", lambda word: word == "on"),
    "link_state": (r"link-state (\S+?)(?:,|\s|$)", str),
}


def functions(reading: Reading) -> dict[str, tuple[int | None, str]]:
    """Number of VFs, None where there can be none, and what is told of each, by the physical function's address."""
    found: dict[str, tuple[int | None, str]] = {}
    for pci, count, told_of in reading.section("functions").fields("sysfs", 3):
        found[pci] = None if count == NONE else number(count, f"number of VFs of {pci}"), told_of
    return found


def ports(node: Node) -> Iterator[Mapping[str, Any]]:
    """What is wanted of each port."""
    yield from node.wishes["sriov"]["ports"]


def test_vf_count(node: Node, reading: Reading) -> None:
    """Every port has as many VFs as declared."""
    found = functions(reading)
    for port in ports(node):
        if port["pci"] not in found:
            raise UnreadableError(f"{port['rail']} has no network interface that would tell its VFs")
        count, wanted = found[port["pci"]][0], len(port["vfs"])
        compare(count is not None or not wanted, f"{port['rail']} shows no SR-IOV")
        compare((count or 0) == wanted, f"{port['rail']} has {count} VFs, wanted {wanted}")


def test_vf_settings(node: Node, reading: Reading) -> None:
    """Every VF has its address and the settings that are managed."""
    found = functions(reading)
    for port in ports(node):
        told_of = lines(found.get(port["pci"], (None, ""))[1], port["rail"]) if port["vfs"] else []
        for index, vf in enumerate(port["vfs"]):
            compare(index < len(told_of), f"{port['rail']} has no VF {index}")
            for name, wanted in vf.items():
                have = setting(name, told_of[index])
                compare(have == wanted, f"{port['rail']} VF {index}: {name} is {have}, wanted {wanted}")
        if not port["vfs"]:
            settled(f"{port['rail']} is to have no VF")


def lines(text: str, rail: str) -> list[str]:
    """The lines of VFs that ``ip -o link show`` prints of a port.

    Raises:
        UnreadableError: it has printed nothing of the port, or a line that is not whole: every kernel tells a VF's link
            state, behind all that is left out where it is zero.
    """
    head, *told_of = re.split(r"\\\s+vf \d+\s+", text)
    if "link/" not in head or not all(re.search(r", link-state \w", line) for line in told_of):
        raise UnreadableError(f"ip link: tells nothing whole of {rail}")
    return told_of


def setting(name: str, told: str) -> Any:
    """A setting out of a VF's line."""
    pattern, read = PATTERNS[name]
    match = re.search(pattern, told)
    if match is None and read is not int:
        raise UnreadableError(f"ip link tells no {name} of a VF")
    return read(match[1]) if match else 0


def test_vf_guid(reading: Reading) -> None:
    """No RDMA device of the node, of a VF or not, is without a node GUID."""
    rows = reading.section("hcas").fields("sysfs", 5)
    bare = [row[0] for row in rows if told(row[1], f"GUID of {row[0]}") == NO_GUID]
    compare(not bare, f"no GUID at {', '.join(bare)}")
