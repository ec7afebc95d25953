"""Which network ports the node itself depends on: the SSH path, the default route, root and storage.

Such a port is never touched without its own consent (``management-port``), whatever the spec says it is.
"""

import ipaddress
import json
import re
from typing import Any, Dict, Iterable, Iterator, List, Mapping, Set, Tuple, Union

from .change import Unknown
from .host import Reader
from .processes import Connection, connections, open_files, processes

NET = "/sys/class/net"
NETWORK_FILESYSTEMS = ("nfs", "nfs4", "ceph", "cifs", "lustre")
STORAGE_PORTS = (3260, 4420)
"""Well-known ports of an iSCSI and of an NVMe-oF target (IANA)."""

Uses = Dict[str, Set[str]]


def carried(
    host: Reader, interfaces: Union[Mapping[str, Tuple[str, ...]], Unknown]
) -> Union[Mapping[str, Tuple[str, ...]], Unknown]:
    """What each netdev carries, by name, lower devices of VLANs and bonds included; Unknown if it cannot be told.

    ``interfaces`` are the addresses of each netdev, as :func:`addresses` gives them.
    """
    if isinstance(interfaces, Unknown):
        return interfaces
    addresses = {_canonical(text.partition("/")[0]): name for name, texts in interfaces.items() for text in texts}
    uses: Uses = {}
    for source in (_ssh, _default_route, _storage):
        problem = source(host, addresses, uses)
        if problem is not None:
            return problem
    _spread_to_lower(host, uses)
    return {name: tuple(sorted(what)) for name, what in uses.items()}


def _json(host: Reader, *argv: str) -> Union[List[Mapping[str, Any]], Unknown]:
    output = host.query(*argv)
    if isinstance(output, Unknown):
        return output
    if output.rc != 0:
        return Unknown(f"{' '.join(argv)}: {output.error}")
    try:
        rows = json.loads(output.stdout or "[]")
    except ValueError:
        rows = None
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        return Unknown(f"{' '.join(argv)}: printed what no known release prints")
    return rows


def addresses(host: Reader) -> Union[Dict[str, Tuple[str, ...]], Unknown]:
    """The IP addresses of each netdev, as ADDRESS/PREFIX."""
    rows = _json(host, "ip", "-j", "addr", "show")
    if isinstance(rows, Unknown):
        return rows
    return {str(row.get("ifname")): tuple(_texts(row.get("addr_info", ()))) for row in rows}


def _texts(entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    for entry in entries:
        if isinstance(entry.get("local"), str):
            yield f"{entry['local']}/{entry.get('prefixlen')}"


def _canonical(address: str) -> str:
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address


def _note(uses: Uses, netdev: Union[str, None], what: str) -> None:
    if netdev and netdev != "lo":
        uses.setdefault(netdev, set()).add(what)


def _ssh(host: Reader, addresses: Mapping[str, str], uses: Uses) -> Union[Unknown, None]:
    """Established connections that a process named sshd holds, and nothing that only looks like one."""
    sockets: Set[str] = set()
    for process in processes(host):
        if not process.name.startswith("sshd"):
            continue
        files = open_files(host, process)
        if isinstance(files, Unknown):
            return files
        sockets |= {file[len("socket:[") : -1] for file in files if file.startswith("socket:[")}
    for connection in connections(host):
        if connection.inode in sockets:
            _note(uses, addresses.get(_canonical(connection.local)), "ssh")
    return None


def _default_route(host: Reader, _: Mapping[str, str], uses: Uses) -> Union[Unknown, None]:
    for family in ("-4", "-6"):
        rows = _json(host, "ip", "-j", family, "route", "show", "default")
        if isinstance(rows, Unknown):
            return rows
        for row in rows:
            hops = [row, *row.get("nexthops", ())]
            for hop in hops:
                _note(uses, hop.get("dev"), "default-route")
    return None


def _storage(host: Reader, addresses: Mapping[str, str], uses: Uses) -> Union[Unknown, None]:
    for connection in connections(host):
        if connection.remote_port in STORAGE_PORTS and _is_remote(connection, addresses):
            _note(uses, addresses.get(_canonical(connection.local)), "storage")
    for server, what in _mounted_servers(host):
        rows = _json(host, "ip", "-j", "route", "get", server)
        if isinstance(rows, Unknown):
            return rows
        for row in rows:
            _note(uses, row.get("dev"), what)
    return None


def _is_remote(connection: Connection, addresses: Mapping[str, str]) -> bool:
    return _canonical(connection.remote) not in addresses


def _mounted_servers(host: Reader) -> Iterator[Tuple[str, str]]:
    """The server addresses of network file systems, and whether the root lies on one."""
    text = host.read("/proc/self/mounts")
    for line in text.splitlines() if isinstance(text, str) else ():
        source, target, kind, options = [*line.split(), "", "", "", ""][:4]
        if kind not in NETWORK_FILESYSTEMS:
            continue
        named = re.search(r"(?:^|,)addr=([0-9a-fA-F.:]+)", options)
        listed = re.match(r"(?://)?\[?([0-9a-fA-F.:]+?)\]?(?:@|:/|,|/)", source)
        match = named or listed
        if match and _canonical(match.group(1)) != "":
            yield match.group(1), "root" if target == "/" else "storage"


def _spread_to_lower(host: Reader, uses: Uses) -> None:
    """What a VLAN, bond or bridge carries, the devices below it carry."""
    queue = list(uses)
    while queue:
        upper = queue.pop()
        names = host.names(f"{NET}/{upper}")
        for entry in names if isinstance(names, tuple) else ():
            if not entry.startswith("lower_"):
                continue
            lower = entry[len("lower_") :]
            if not uses[upper] <= uses.setdefault(lower, set()):
                uses[lower] |= uses[upper]
                queue.append(lower)
