"""A port's GID table. What counts is type and address: the index of the same address differs from host to host."""

import ipaddress
import re
from typing import Iterable, List, Optional, Tuple, Union

from ..change import Unknown
from ..host import Reader
from ..texts import natural
from .seen import Gid

ROCE_V2 = "RoCE v2"
EMPTY = re.compile(r"[0:]*|fe80(:0000){7}")


def read(host: Reader, rdma: Optional[str]) -> Union[Tuple[Gid, ...], Unknown]:
    """The rows in use of port 1, by index."""
    if rdma is None:
        return Unknown("the port has no RDMA device")
    folder = f"/sys/class/infiniband/{rdma}/ports/1"
    rows = host.names(f"{folder}/gids")
    if not isinstance(rows, tuple):
        return rows if isinstance(rows, Unknown) else Unknown(f"{folder}/gids is not there")
    found: List[Gid] = []
    for row in sorted(number for number in map(natural, rows) if number is not None):
        text = host.read(f"{folder}/gids/{row}")
        if isinstance(text, Unknown):
            return text
        if isinstance(text, str) and not EMPTY.fullmatch(text):
            # A row may be emptied between the two reads: its type is then gone.
            kind = host.read(f"{folder}/gid_attrs/types/{row}")
            found += [Gid(row, text, kind)] if isinstance(kind, str) else []
    return tuple(found)


def address(gid: Gid) -> Optional[str]:
    """The IP address that a GID stands for, IPv4 ones unmapped; None for what is no GID at all."""
    try:
        six = ipaddress.IPv6Address(gid.address)
    except ValueError:
        return None
    return str(six.ipv4_mapped or six)


def index(gids: Iterable[Gid], wanted: str) -> Optional[int]:
    """The index of the RoCE v2 row of an address, given with or without its prefix length."""
    bare = str(ipaddress.ip_interface(wanted).ip)
    return next((gid.index for gid in gids if gid.kind == ROCE_V2 and address(gid) == bare), None)


def routable(gids: Iterable[Gid]) -> Tuple[int, ...]:
    """The indexes of the RoCE v2 rows that are not link-local."""
    rows = ((gid.index, address(gid)) for gid in gids if gid.kind == ROCE_V2)
    return tuple(row for row, text in rows if text is not None and not ipaddress.ip_address(text).is_link_local)
