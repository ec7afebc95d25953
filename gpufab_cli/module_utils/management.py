"""Which network ports the node itself depends on: the SSH path, the default route, root and storage.

Such a port is never touched without its own consent (``management-port``), whatever the spec says it is.
"""

import ipaddress
import re
from typing import Any, Dict, Iterator, List, Mapping, Set, Tuple, Union

from .change import Unknown
from .daemons import named
from .host import Reader
from .processes import Connection, connections, open_files
from .texts import parse_json

NET = "/sys/class/net"
NVME = "/sys/class/nvme"
NETWORK_FILESYSTEMS = ("nfs", "nfs4", "ceph", "cifs", "smb3", "lustre")
SSH_DAEMONS = ("sshd", "sshd-session", "sshd-auth")
"""OpenSSH's server, in one program or, since 9.8, in several."""
STORAGE_PORTS = (3260, 4420)
"""Well-known ports of an iSCSI and of an NVMe-oF target (IANA)."""

OVS_DATAPATH = "ovs-system"
"""The netdev of Open vSwitch's kernel datapath; its uplinks are below it (net/openvswitch/vport-netdev.c)."""
SERVERLESS_FILESYSTEMS = ("beegfs", "beegfs_nodev", "gpfs", "wekafs")
"""Network file systems whose mounts do not name their servers."""

Uses = Dict[str, Set[str]]
Established = Tuple[Connection, ...]


def carried(
    host: Reader, interfaces: Union[Mapping[str, Tuple[str, ...]], Unknown]
) -> Union[Mapping[str, Tuple[str, ...]], Unknown]:
    """What each netdev carries, by name, lower devices of VLANs and bonds included; Unknown if it cannot be told.

    ``interfaces`` are the addresses of each netdev, as :func:`addresses` gives them.
    """
    if isinstance(interfaces, Unknown):
        return interfaces
    addresses = {canonical(text.partition("/")[0]): name for name, texts in interfaces.items() for text in texts}
    uses: Uses = {}
    established = connections(host)  # once: the kernel goes through all its hash table to print it
    if isinstance(established, Unknown):
        return established
    for source in (_ssh, _default_route, _storage):
        problem = source(host, established, addresses, uses)
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
        rows = parse_json(output.stdout)
    except ValueError:
        rows = None
    if not _is_table(rows):
        return Unknown(f"{' '.join(argv)}: printed what no known release prints")
    return rows  # type: ignore[no-any-return]


def _is_table(rows: object) -> bool:
    """Whether these are rows whose names are texts and whose own rows, if any, are the like."""
    return isinstance(rows, list) and all(
        isinstance(row, dict)
        and all(isinstance(row.get(name, ""), str) for name in ("ifname", "dev", "local"))
        and all(_is_table(row.get(name, [])) for name in ("addr_info", "nexthops"))
        for row in rows
    )


def addresses(host: Reader) -> Union[Dict[str, Tuple[str, ...]], Unknown]:
    """The IP addresses of each netdev, as ADDRESS/PREFIX."""
    rows = _json(host, "ip", "-j", "addr", "show")
    if isinstance(rows, Unknown):
        return rows
    if not rows:  # there is always lo: without it no port would seem to carry anything
        return Unknown("ip -j addr show: printed no interface at all")
    if not all(row.get("ifname") for row in rows):
        return Unknown("ip -j addr show: printed an interface without a name")
    if not all("addr_info" in row and all(_is_address(entry) for entry in row["addr_info"]) for row in rows):
        return Unknown("ip -j addr show: printed an interface without its addresses")
    return {row["ifname"]: tuple(f"{e['local']}/{e['prefixlen']}" for e in row["addr_info"]) for row in rows}


def _is_address(entry: Mapping[str, Any]) -> bool:
    """Every address has both, down to those of point-to-point links (iproute2 ip/ipaddress.c, print_addrinfo)."""
    return isinstance(entry.get("local"), str) and type(entry.get("prefixlen")) is int


def canonical(address: str) -> str:
    """An address in its one usual form; any other text as it is."""
    try:
        return str(ipaddress.ip_address(address))
    except ValueError:
        return address


def _note(uses: Uses, netdev: Union[str, None], what: str) -> None:
    if netdev and netdev != "lo":
        uses.setdefault(netdev, set()).add(what)


def _ssh(host: Reader, established: Established, addresses: Mapping[str, str], uses: Uses) -> Union[Unknown, None]:
    """Established connections that root's sshd holds, which keeps them open beside the user's own part."""
    sockets: Set[str] = set()
    for process in named(host, SSH_DAEMONS):
        files = open_files(host, process)
        if isinstance(files, Unknown):
            return files
        sockets |= {file[len("socket:[") : -1] for file in files.values() if file.startswith("socket:[")}
    for connection in established:
        problem = _connected(host, connection, addresses, "ssh", uses) if connection.inode in sockets else None
        if problem is not None:
            return problem
    return None


def _connected(
    host: Reader, connection: Connection, addresses: Mapping[str, str], what: str, uses: Uses
) -> Union[Unknown, None]:
    """Note the netdev of a connection's own address, or the one on its way where that address is on none that sends.

    Hosts that speak BGP to their switches have their address on ``lo`` or a dummy and a route over every rail.
    """
    netdev, remote = addresses.get(canonical(connection.local)), canonical(connection.remote)
    _note(uses, netdev, what)
    if remote in addresses or not (netdev is None or _sends_nothing(host, netdev)):
        return None
    return _routed(host, remote, what, uses)


def _sends_nothing(host: Reader, netdev: str) -> bool:
    """Whether a netdev is ``lo``, a dummy or the like: no device of its own, and none below it."""
    place, names = host.link(f"{NET}/{netdev}"), host.names(f"{NET}/{netdev}")
    virtual = netdev == "lo" or (isinstance(place, str) and "/virtual/" in place)
    return virtual and not any(name.startswith("lower_") for name in (names if isinstance(names, tuple) else ()))


def _routed(host: Reader, remote: str, what: str, uses: Uses) -> Union[Unknown, None]:
    """Note the netdev that leads to an address."""
    netdevs = routed(host, remote)
    if isinstance(netdevs, Unknown):
        return netdevs
    for netdev in netdevs:
        _note(uses, netdev, what)
    return None


def routed(host: Reader, remote: str) -> Union[Tuple[str, ...], Unknown]:
    """The netdevs that lead to an address."""
    rows = _json(host, "ip", "-j", "route", "get", remote)
    if isinstance(rows, Unknown):
        return rows
    if not all(_leads_somewhere(row) for row in rows):
        return Unknown(f"ip -j route get {remote}: printed a route without a device")
    return tuple(row["dev"] for row in rows if row.get("dev"))


def _leads_somewhere(row: Mapping[str, Any]) -> bool:
    """Whether a route has a device, or several, or is one that goes nowhere by its type: blackhole, unreachable."""
    return bool(row.get("dev") or row.get("nexthops") or row.get("type"))


def _default_route(host: Reader, _: Established, __: Mapping[str, str], uses: Uses) -> Union[Unknown, None]:
    for family in ("-4", "-6"):
        rows = _json(host, "ip", "-j", family, "route", "show", "default")
        if isinstance(rows, Unknown):
            return rows
        if not all(_leads_somewhere(row) for row in rows):
            return Unknown(f"ip -j {family} route show default: printed a route without a device")
        for row in rows:
            hops = [row, *row.get("nexthops", ())]
            for hop in hops:
                _note(uses, hop.get("dev"), "default-route")
    return None


def _storage(host: Reader, established: Established, addresses: Mapping[str, str], uses: Uses) -> Union[Unknown, None]:
    for connection in established:
        if connection.remote_port in STORAGE_PORTS and canonical(connection.remote) not in addresses:
            problem = _connected(host, connection, addresses, "storage", uses)
            if problem is not None:
                return problem
    _note_serverless(host, uses)
    for server, what in (*_mounted_servers(host), *_nvme_servers(host)):
        problem = _routed(host, server, what, uses)
        if problem is not None:
            return problem
    return None


def _note_serverless(host: Reader, uses: Uses) -> None:
    """A file system that does not say over which port it is reached may be reached over any."""
    text, names = host.read("/proc/self/mounts"), host.names(NET)
    kinds = (
        {line.split(" ")[2] for line in text.splitlines() if line.count(" ") > 1} if isinstance(text, str) else set()
    )
    if kinds & set(SERVERLESS_FILESYSTEMS):
        for name in names if isinstance(names, tuple) else ():
            if host.exists(f"{NET}/{name}/device"):
                _note(uses, name, "storage")


def _mounted_servers(host: Reader) -> Iterator[Tuple[str, str]]:
    """The server addresses of network file systems, and whether the root lies on one."""
    text = host.read("/proc/self/mounts")
    for line in text.splitlines() if isinstance(text, str) else ():
        source, target, kind, options = [*line.split(), "", "", "", ""][:4]
        if kind not in NETWORK_FILESYSTEMS:
            continue
        named = re.search(r"(?:^|,)(?:mon_)?addr=([^,/]+)", options)
        listed = re.match(r"(?://)?(\[[^\]]*\]|[^@,/]*)", source)
        match = named or listed
        server = _address(match.group(1)) if match else ""
        if server:
            yield server, "root" if target == "/" else "storage"


def _address(text: str) -> str:
    """The IP address in ``10.0.0.1``, ``10.0.0.1:6789`` (Ceph), ``10.0.0.1:`` or ``[fd00::1]:6789``; "" in a name."""
    bare = text[1:].partition("]")[0] if text.startswith("[") else text.partition("%")[0]
    for candidate in (bare, bare.rstrip(":"), bare.rstrip(":").rpartition(":")[0]):
        try:
            return str(ipaddress.ip_address(candidate))
        except ValueError:
            continue
    return ""


def _nvme_servers(host: Reader) -> Iterator[Tuple[str, str]]:
    """The targets of NVMe over fabrics. Those over RDMA have no TCP connection that would show them.

    ``address`` of a controller reads ``traddr=10.0.0.1,trsvcid=4420,…`` (drivers/nvme/host/fabrics.c).
    """
    names = host.names(NVME)
    for name in names if isinstance(names, tuple) else ():
        match = re.search(r"(?:^|,)traddr=([^,]+)", str(host.read(f"{NVME}/{name}/address")))
        server = _address(match.group(1)) if match else ""
        if server:
            yield server, "storage"


def _spread_to_lower(host: Reader, uses: Uses) -> None:
    """What a VLAN, bond or bridge carries, the devices below it carry; what a VF carries, its port does."""
    queue = list(uses)
    while queue:
        upper = queue.pop()
        for lower in lower_netdevs(host, upper):
            if not uses[upper] <= uses.setdefault(lower, set()):
                uses[lower] |= uses[upper]
                queue.append(lower)


def lower_netdevs(host: Reader, netdev: str) -> Iterator[str]:
    """The netdevs directly below one, and that of its port below a VF's."""
    if _sends_nothing(host, netdev) and host.exists(f"{NET}/{OVS_DATAPATH}"):
        # An internal port of Open vSwitch shows nothing below it; any uplink of the datapath may carry it.
        yield OVS_DATAPATH
    names, physical = host.names(f"{NET}/{netdev}"), host.names(f"{NET}/{netdev}/device/physfn/net")
    for name in names if isinstance(names, tuple) else ():
        if name.startswith("lower_"):
            yield name[len("lower_") :]
    yield from physical if isinstance(physical, tuple) else ()
