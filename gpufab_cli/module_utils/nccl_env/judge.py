"""What is wrong with what NCCL is told, whoever has written it: the site's files and running jobs as well.

gpufab sets its own lines only. Here it says what a value really does on this node, where that cannot be meant.
"""

from dataclasses import dataclass
from typing import Dict, Iterator, Mapping, Tuple, Union

from .. import rails
from ..change import Finding, Unknown
from ..devices import Devices
from ..rails import RailWant
from ..roce import gids
from ..roce.seen import Gid
from . import hca
from .seen import NcclEnvSeen
from .values import gid_of, oldest
from .variables import FINDS_PORTS, GID, HCA, NUMBERS, SOCKET, TC, TOPO, is_octal, number
from .want import NcclEnvWant

DSCPS = 64
MOST = 12  # names that a finding lists
IGNORE = "NCCL_IGNORE_NET_MISMATCH"


@dataclass(frozen=True)
class Node:
    """What values are held against."""

    devices: Devices
    seen: NcclEnvSeen
    want: NcclEnvWant

    @property
    def rdma(self) -> Tuple[str, ...]:
        """Every RDMA device, those of VFs and of other networks included."""
        return tuple(device.name for nic in self.devices.nics for device in nic.rdma)

    @property
    def roce(self) -> Dict[str, RailWant]:
        """The RoCE ports that could be looked at, by the name of their RDMA device."""
        found = {}
        for rail in self.want.rails:
            nic = self.devices.nic(rail.pci)
            name = rails.rdma_name(self.devices, nic) if nic is not None and rail.pci in self.seen.ports else None
            if name is not None:
                found[name] = rail
        return found


def judge(node: Node, who: str, values: Mapping[str, str]) -> Iterator[Finding]:
    """Everything that is wrong with one set of variables."""
    yield from _octal(who, values)
    yield from _hcas(node, who, values)
    yield from _sockets(node, who, values)
    yield from _class(node, who, values)
    yield from _gid(node, who, values)
    yield from _topology(node, who, values)
    if values.get(IGNORE) == "1":
        yield Finding("nccl.ignore-mismatch", (who, IGNORE), "ranks with other networks hang instead of failing")


def _topology(node: Node, who: str, values: Mapping[str, str]) -> Iterator[Finding]:
    """A topology file that says what NCCL would find out, or that speaks of another machine."""
    if TOPO not in values:
        return
    release = oldest(node.seen, node.want)
    if release is not None and release >= FINDS_PORTS:
        words = f"NCCL {'.'.join(map(str, release))} finds out by itself what {values[TOPO]} tells it"
        yield Finding("nccl.topo-unneeded", (who, TOPO), words)
    strange = dict(node.seen.strangers).get(who, ())
    if strange:
        words = f"{values[TOPO]}: no GPU or NIC is at {_some(strange)}"
        yield Finding("nccl.topo-strange", (who, TOPO), words)


def _some(names: Tuple[str, ...]) -> str:
    """The first of some names: a list that a user has written may have any number."""
    return ", ".join(names[:MOST]) + (", …" if names[MOST:] else "")


def _octal(who: str, values: Mapping[str, str]) -> Iterator[Finding]:
    for name in NUMBERS:
        if is_octal(values.get(name, "")):
            means = number(values[name])
            text = f"{values[name]} is octal: " + ("no number at all" if means is None else f"NCCL reads {means}")
            yield Finding("nccl.octal", (who, name), text)


def _hcas(node: Node, who: str, values: Mapping[str, str]) -> Iterator[Finding]:
    if HCA not in values:
        return
    found, path = hca.parse(values[HCA]), (who, HCA)
    extra = found.caught(node.rdma)
    if extra:
        verb = "leaves out" if found.excludes else "also takes"
        yield Finding("nccl.prefix", path, f"without = it {verb} {', '.join(extra)}")
    unmatched = found.unmatched(node.rdma)
    if unmatched and not found.excludes:
        words = f"no RDMA device is called {_some(unmatched)}; there are {_some(node.rdma) or 'none'}"
        yield Finding("nccl.no-match", path, words)
    portless = () if found.excludes else found.portless(node.seen.device_ports)
    if portless:
        words = f"no RDMA device has the port of {_some(portless)}: NCCL leaves it out and says nothing"
        yield Finding("nccl.no-match", path, words)


def _sockets(node: Node, who: str, values: Mapping[str, str]) -> Iterator[Finding]:
    if SOCKET not in values or not node.seen.interfaces:
        return
    found = hca.parse(values[SOCKET])
    if not found.selected(node.seen.interfaces):
        what = "leaves no interface" if found.excludes else f"no interface is called {_some(found.names)}"
        yield Finding("nccl.no-match", (who, SOCKET), what)


def _class(node: Node, who: str, values: Mapping[str, str]) -> Iterator[Finding]:
    """A traffic class that the NICs' maps lead elsewhere than to a lossless priority."""
    found = number(values[TC]) if TC in values else None
    if found is None or node.want.roce is None:
        return
    wrong: Dict[str, Tuple[str, ...]] = {}
    for name, rail in node.roce.items():
        port = node.seen.ports[rail.pci]
        why = rails.astray(port, found, node.want.roce)
        if isinstance(why, Unknown):
            yield Finding("nccl.class", (who, TC), f"{rail.rail}: {why.reason}", unknown=True)
        elif why:
            code = "nccl.tos" if found < DSCPS and not rails.astray(port, found << 2, node.want.roce) else "nccl.class"
            wrong[f"{code} {why}"] = (*wrong.get(f"{code} {why}", ()), name)
    for key, names in wrong.items():
        code, _, why = key.partition(" ")
        hint = f"; as a DSCP {found} would be {found << 2}, or {found << 2 | 2} with ECN" if code == "nccl.tos" else ""
        on = f" on {', '.join(names)}"
        yield Finding(code, (who, TC), f"{found} is DSCP {found >> 2}, which {why}{on}{hint}")


def _gid(node: Node, who: str, values: Mapping[str, str]) -> Iterator[Finding]:
    index = number(values[GID]) if GID in values else None
    if index is None or index < 0:
        return
    used = hca.parse(values[HCA]).selected(tuple(node.roce)) if HCA in values else tuple(node.roce)
    wrong: Dict[Tuple[str, bool], Tuple[str, ...]] = {}
    for name in used:
        why = _wrong_gid(node, index, node.roce[name])
        if why:
            key = (str(why.reason), True) if isinstance(why, Unknown) else (why, False)
            wrong[key] = (*wrong.get(key, ()), name)
    for (why, unknown), names in wrong.items():
        text = why if unknown else f"index {index} is {why}"
        yield Finding("nccl.gid", (who, GID), f"{', '.join(names)}: {text}", unknown=unknown)


def _wrong_gid(node: Node, index: int, rail: RailWant) -> Union[str, Unknown]:
    """What the index is on a port that is not the GID of its address; "" where it is."""
    table = node.seen.ports[rail.pci].gids
    if isinstance(table, Unknown):
        return table
    why = _not_the_one(table, index, rail)
    right = gid_of(node.seen, rail)
    return f"{why}; RoCE v2 of its address is {right}" if why and isinstance(right, int) else why


def _not_the_one(table: Tuple[Gid, ...], index: int, rail: RailWant) -> str:
    row = next((gid for gid in table if gid.index == index), None)
    if row is None:
        return "empty"
    if row.kind != gids.ROCE_V2:
        return "RoCE v1"
    if index not in gids.routable((row,)):
        return f"link-local {gids.address(row)}"
    if rail.address is not None and gids.index((row,), rail.address) is None:
        return f"{gids.address(row)}, not the fabric's address"
    return ""
