"""Error counters of NIC ports: what an apply watches for a while before it goes on to the next hosts.

They only ever count up, from the load of the driver on; one that rises while nothing is being changed tells of lost,
damaged or reordered packets, or of a link that comes and goes.
"""

import json
import re
import sys
from typing import Any, Dict, List, Mapping, Sequence, TextIO, Tuple

from .devices import INFINIBAND, NET, PCI_DEVICES
from .host import Output, Reader
from .schema import PciAddress, decode
from .texts import natural, parse_json

FILES = ("hw_counters/out_of_sequence", "hw_counters/packet_seq_err", "counters/symbol_error", "counters/link_downed")
"""Of an RDMA device's port 1 (Linux, Documentation/ABI/stable/sysfs-class-infiniband)."""

NETDEV_FILES = ("carrier_down_count",)
"""Of any network interface (Documentation/ABI/testing/sysfs-class-net)."""

STATISTICS = ("rx_discards_phy", "tx_discards_phy", "link_down_events_phy")
"""Of ``ethtool -S`` (Linux, networking/device_drivers/ethernet/mellanox/mlx5/counters.rst): packets dropped by the port
for lack of buffers on their way in, or on their way out; times that the link went down."""

_STATISTIC = re.compile("^ *([a-z0-9_]+): ([0-9]+)$", re.MULTILINE)


def read(host: Reader, pci: str) -> Dict[str, int]:
    """Those of the counters that the port at a PCI address has and that can be read."""
    found: Dict[str, int] = {}
    for device in _names(host, f"{PCI_DEVICES}/{pci}/infiniband"):
        found.update(_files(host, f"{INFINIBAND}/{device}/ports/1", FILES))
    for netdev in _names(host, f"{PCI_DEVICES}/{pci}/net"):
        found.update(_files(host, f"{NET}/{netdev}", NETDEV_FILES))
        found.update(_statistics(host, netdev))
    return found


def _files(host: Reader, folder: str, names: Sequence[str]) -> Dict[str, int]:
    return _numbers({name.rpartition("/")[2]: host.read(f"{folder}/{name}") for name in names})


def _statistics(host: Reader, netdev: str) -> Dict[str, int]:
    printed = host.query("ethtool", "-S", netdev)
    if not isinstance(printed, Output) or printed.rc != 0:
        return {}
    values = dict(_STATISTIC.findall(printed.whole))
    return _numbers({name: values.get(name) for name in STATISTICS})


def _numbers(texts: Mapping[str, object]) -> Dict[str, int]:
    found = {name: natural(text) for name, text in texts.items()}
    return {name: number for name, number in found.items() if number is not None}


def answer(host: Reader, stdin: TextIO, stdout: TextIO, marker: str) -> bool:
    """Print the counters of the ports named on stdin, by PCI address; False when it names none."""
    try:
        ports: List[str] = [decode(PciAddress, pci, "ports") for pci in parse_json(stdin.read())["ports"]]
    except (ValueError, KeyError, TypeError) as error:
        print(f"gpufab: ports on stdin: {error}", file=sys.stderr)  # noqa: T201
        return False
    found: Dict[str, Any] = {pci: read(host, pci) for pci in ports}
    stdout.write(f"{marker}\n{json.dumps(found)}\n")
    return True


def _names(host: Reader, path: str) -> Tuple[str, ...]:
    names = host.names(path)
    return names if isinstance(names, tuple) else ()
