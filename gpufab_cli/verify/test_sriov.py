"""Virtual functions: as many as declared, with their addresses and settings, and no RDMA device without a GUID."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from gpufab_cli.verify.expected import Node
from gpufab_cli.verify.reading import Reading, UnreadableError

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


def functions(reading: Reading) -> dict[str, tuple[int, list[str]]]:
    """Number of VFs and what is told of each, by the PCI address of the physical function."""
    found: dict[str, tuple[int, list[str]]] = {}
    for line in reading.section("functions").require("sysfs").splitlines():
        pci, count, told = [*line.split("\t", 2), "", ""][:3]
        if count.isdigit():
            found[pci] = int(count), re.split(r"\\\s+vf \d+\s+", told)[1:]
    return found


def ports(node: Node) -> Iterator[Mapping[str, Any]]:
    """What is wanted of each port."""
    yield from node.wishes["sriov"]["ports"]


def test_vf_count(node: Node, reading: Reading) -> None:
    """Every port has as many VFs as declared."""
    found = functions(reading)
    for port in ports(node):
        wanted = len(port["vfs"])
        assert port["pci"] in found or not wanted, f"{port['rail']} shows no SR-IOV"
        count = found.get(port["pci"], (0, []))[0]
        assert count == wanted, f"{port['rail']} has {count} VFs, wanted {wanted}"


def test_vf_settings(node: Node, reading: Reading) -> None:
    """Every VF has its address and the settings that are managed."""
    found = functions(reading)
    for port in ports(node):
        told = found.get(port["pci"], (0, []))[1]
        for index, vf in enumerate(port["vfs"]):
            assert index < len(told), f"{port['rail']} has no VF {index}"
            for name, wanted in vf.items():
                have = setting(name, told[index])
                assert have == wanted, f"{port['rail']} VF {index}: {name} is {have}, wanted {wanted}"


def setting(name: str, told: str) -> Any:
    """A setting out of a VF's line."""
    pattern, read = PATTERNS[name]
    match = re.search(pattern, told)
    if match is None and read is not int:
        raise UnreadableError(f"ip link tells no {name} of a VF")
    return read(match[1]) if match else 0


def test_vf_guid(reading: Reading) -> None:
    """No RDMA device of the node, of a VF or not, is without a node GUID."""
    rows = [line.split("\t") for line in reading.section("hcas").require("sysfs").splitlines()]
    bare = [row[0] for row in rows if row[1:2] == [NO_GUID]]
    assert not bare, f"no GUID at {', '.join(bare)}"
