"""What NCCL knows of its environment: since which release each variable is read, and how values are written.

Source of the releases: the tags of NVIDIA/nccl; nothing older than 2.3.5 is public. ``param.cc``: numbers are read by
``strtoll`` with base 0, so that a leading zero makes them octal.
"""

import re
from typing import Dict, Optional, Tuple

Version = Tuple[int, ...]
OLDEST: Version = (2, 3, 5)
CHOOSES_GID: Version = (2, 21, 5)
"""From here on NCCL picks the GID itself: RoCE v2, IPv4, not link-local."""

_SINCE: Dict[Version, str] = {
    OLDEST: "IB_HCA IB_GID_INDEX IB_TC IB_SL IB_TIMEOUT IB_RETRY_CNT IB_DISABLE SOCKET_IFNAME SOCKET_FAMILY "
    "NET_GDR_READ",
    (2, 4, 8): "SOCKET_NTHREADS NSOCKS_PERTHREAD",
    (2, 5, 6): "CROSS_NIC HOSTID",
    (2, 6, 4): "NET_GDR_LEVEL TOPO_FILE TOPO_DUMP_FILE GRAPH_FILE IB_AR_THRESHOLD",
    (2, 8, 3): "IB_PKEY",
    (2, 10, 3): "IB_QPS_PER_CONNECTION",
    (2, 11, 4): "NET_PLUGIN",
    (2, 12, 7): "IB_PCI_RELAXED_ORDERING PXN_DISABLE P2P_PXN_LEVEL",
    (2, 13, 4): "DMABUF_ENABLE",
    (2, 16, 2): "IB_ADAPTIVE_ROUTING",
    (2, 17, 1): "NVLS_ENABLE",
    (2, 18, 1): "IB_SPLIT_DATA_ON_QPS IB_MERGE_VFS CUMEM_ENABLE",
    (2, 20, 3): "IB_MERGE_NICS",
    CHOOSES_GID: "IB_ROCE_VERSION_NUM IB_ADDR_FAMILY IB_ADDR_RANGE MNNVL_ENABLE",
    (2, 22, 3): "IB_FIFO_TC IB_ROUTABLE_FLID_GID_INDEX",
    (2, 23, 4): "CONF_FILE IB_ECE_ENABLE IB_RETURN_ASYNC_EVENTS",
    (2, 24, 3): "NET_MERGE_LEVEL NET_FORCE_MERGE IB_WARN_RAIL_LOCAL",
    (2, 26, 2): "NET_GDR_C2C",
    (2, 27, 3): "IB_DATA_DIRECT",
    (2, 28, 3): "NETDEVS_POLICY",
    (2, 30, 3): "IB_OOO_RQ",
    (2, 30, 7): "GIN_IB_TC IB_SUBNET_AWARE_ROUTING",
}
SINCE: Dict[str, Version] = {f"NCCL_{name}": first for first, names in _SINCE.items() for name in names.split()}
"""The release that reads a variable first. What is not listed here may be older or newer: nothing is said of it."""

HCA, SOCKET, TC, SL, GID = (f"NCCL_{name}" for name in ("IB_HCA", "SOCKET_IFNAME", "IB_TC", "IB_SL", "IB_GID_INDEX"))
TOPO = "NCCL_TOPO_FILE"
TOPO_FILES = (TOPO, "NCCL_GRAPH_FILE")
FINDS_PORTS: Version = (2, 20, 3)
"""From here on NCCL itself joins two ports of a card, for which files were written by hand before."""
NUMBERS = (TC, SL, GID, "NCCL_IB_FIFO_TC", "NCCL_IB_TIMEOUT", "NCCL_IB_RETRY_CNT", "NCCL_IB_QPS_PER_CONNECTION")


def parse_version(text: str) -> Optional[Version]:
    """``2.27.5`` as numbers, packaging suffixes left out; None for what is no version."""
    match = re.match(r"\d+(?:\.\d+)+", text)
    return tuple(map(int, match[0].split("."))) if match else None


def knows(version: Optional[Version], name: str) -> bool:
    """Whether a release reads a variable; of an unknown release only what every one does is taken for known."""
    first = SINCE.get(name, OLDEST)
    return first <= (version or OLDEST)


_LIMIT = 1 << 63


def number(text: str) -> Optional[int]:
    """What NCCL makes of a number: 106, 0x6a and, in octal, 0152; None where it is none.

    NCCL keeps its default for what strtoll(3) cannot hold (NVIDIA/nccl, ncclLoadParam); any user may write such a
    thing.
    """
    match = re.fullmatch(r"\s*([+-]?)(0[xX][0-9a-fA-F]+|[0-9]+)", text)
    if match is None:
        return None
    digits = match[2]
    octal = len(digits) > 1 and digits[0] == "0" and digits[1] not in "xX"
    try:
        value = int(digits, 8) if octal else int(digits, 0)
    except ValueError:  # 089: strtoll stops at the first digit that is not octal
        return None
    value = -value if match[1] == "-" else value
    return value if -_LIMIT <= value < _LIMIT else None


def is_octal(text: str) -> bool:
    """Whether somebody's leading zero makes a number octal."""
    return re.fullmatch(r"\s*[+-]?0[0-9]+", text) is not None
