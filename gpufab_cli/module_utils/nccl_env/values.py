"""Which variables NCCL is told on a node, and what of the wish is not told to the release that is there."""

from dataclasses import dataclass
from typing import Dict, List, Optional, Tuple, Union

from ..change import Finding, Unknown
from ..devices import Devices
from ..rails import RailWant, interfaces, names
from ..roce import gids
from . import hca
from .seen import NcclEnvSeen
from .variables import CHOOSES_GID, GID, HCA, SINCE, SOCKET, TC, Version, knows, parse_version
from .want import NcclEnvWant

PORT = "1"
"""Every function of the cards of today has one port, number 1."""


@dataclass(frozen=True)
class Told:
    """The variables, why they cannot be told now ("" where they can), and what else is to be said."""

    values: Dict[str, str]
    blocked: str
    findings: Tuple[Finding, ...]


def told(devices: Devices, seen: NcclEnvSeen, want: NcclEnvWant) -> Told:
    """What the node's NCCL is to be told. One rail without a device withholds all: a shorter list shifts the rest."""
    findings: List[Finding] = []
    values: Dict[str, str] = {}
    blocked = ""
    devs = names(devices, want.rails)
    if isinstance(devs, Finding):
        blocked = f"{devs.path[-1]}: {devs.evidence}"
        findings.append(devs)
    elif devs:
        values[HCA] = hca.exact_list(devs, PORT)
    sockets = interfaces(devices, want.socket_interfaces or (), want.socket_ports or ())
    if isinstance(sockets, Finding):
        blocked = blocked or f"{sockets.path[0]}: {sockets.evidence}"
        findings.append(sockets)
    elif sockets:
        values[SOCKET] = hca.exact_list(sockets)
    if want.roce is not None:
        values[TC] = str(want.roce.traffic_class)
    release = oldest(seen, want)
    index = _gid_index(seen, want, release)
    if isinstance(index, Finding):
        blocked = blocked or index.evidence
        findings.append(index)
    elif index is not None:
        values[GID] = str(index)
    asked = want.variables or {}
    values.update({name: value for name, value in asked.items() if knows(release, name)})
    findings += _left_out(release, tuple(name for name in asked if not knows(release, name)))
    return Told(values, blocked, tuple(findings))


def oldest(seen: NcclEnvSeen, want: NcclEnvWant) -> Optional[Version]:
    """The oldest NCCL that reads the file; None where none is declared and none is found."""
    if want.release is not None:
        return parse_version(want.release)
    return parse_version(seen.libraries[0]) if seen.libraries else None


def _gid_index(seen: NcclEnvSeen, want: NcclEnvWant, release: Optional[Version]) -> Union[int, Finding, None]:
    """As declared; else unset for NCCL that chooses by itself, and for older ones what all ports have in common."""
    roce = [rail for rail in want.rails if rail.transport == "roce"]
    if want.gid_index is not None or not roce or release is None or release >= CHOOSES_GID:
        return want.gid_index
    found = {rail.rail: gid_of(seen, rail) for rail in roce}
    unknown = [index for index in found.values() if isinstance(index, Unknown)]
    if unknown:
        return Finding("nccl.gid", (GID,), unknown[0].reason, unknown=True)
    if len(set(found.values())) == 1 and None not in found.values():
        return next(iter(found.values()))  # type: ignore[return-value]
    shown = ", ".join(f"{rail} {'none' if index is None else index}" for rail, index in found.items())
    return Finding("nccl.gid", (GID,), f"no index that all ports share: {shown}; this NCCL does not choose by itself")


def gid_of(seen: NcclEnvSeen, rail: RailWant) -> Union[int, Unknown, None]:
    """The index of the RoCE v2 GID of the port's address, or of its first that is not link-local."""
    port = seen.ports.get(rail.pci)
    if port is None:
        return Unknown(f"{rail.rail}: the port is not there")
    if isinstance(port.gids, Unknown):
        return Unknown(f"{rail.rail}: {port.gids.reason}")
    if rail.address is not None:
        return gids.index(port.gids, rail.address)
    return next(iter(gids.routable(port.gids)), None)


def _left_out(release: Optional[Version], left: Tuple[str, ...]) -> List[Finding]:
    if not left:
        return []
    if release is None:
        text = f"no NCCL is found and no release declared: {', '.join(left)} left out"
        return [Finding("nccl.too-new", ("NCCL",), text, unknown=True)]
    shown = ".".join(map(str, release))
    listed = ", ".join(f"{name} (since {'.'.join(map(str, SINCE[name]))})" for name in left)
    return [Finding("nccl.too-new", (f"NCCL {shown}",), f"it does not know {listed}: left out")]
