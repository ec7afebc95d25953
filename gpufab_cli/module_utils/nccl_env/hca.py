"""The list that NCCL_IB_HCA and NCCL_SOCKET_IFNAME hold: which names it means, and which it matches.

``[^][=]NAME[:PORT],...``: names are prefixes unless ``=`` is given, so that ``mlx5_1`` also takes ``mlx5_10``; ``^``
leaves out (NVIDIA/nccl, parseStringList and matchIfList).
"""

import re
from dataclasses import dataclass
from typing import Iterable, Mapping, Optional, Tuple

_ANY = -1
"""The port that stands for all (matchPort)."""


@dataclass(frozen=True)
class NameList:
    """A list as NCCL reads it: names, and what is written behind the colon of each, None where there is none."""

    names: Tuple[str, ...]
    exact: bool
    excludes: bool
    ports: Tuple[Optional[str], ...] = ()

    def matched(self, name: str, devices: Iterable[str]) -> Tuple[str, ...]:
        """The devices that one name of the list stands for."""
        return tuple(dev for dev in devices if (dev == name if self.exact else dev.startswith(name)))

    def selected(self, devices: Tuple[str, ...]) -> Tuple[str, ...]:
        """The devices that the list leaves in use, in the order they are given in."""
        hit = {dev for name in self.names for dev in self.matched(name, devices)}
        return tuple(dev for dev in devices if (dev in hit) != self.excludes)

    def caught(self, devices: Tuple[str, ...]) -> Tuple[str, ...]:
        """Devices that no name means and a prefix matches all the same, where the name itself is a device's."""
        meant = [name for name in self.names if name in devices]
        found = {dev for name in meant for dev in self.matched(name, devices)}
        return tuple(dev for dev in devices if dev in found and dev not in self.names)

    def unmatched(self, devices: Tuple[str, ...]) -> Tuple[str, ...]:
        """The names that no device answers to."""
        return tuple(name for name in self.names if not self.matched(name, devices))

    def portless(self, devices: Mapping[str, Tuple[str, ...]]) -> Tuple[str, ...]:
        """The entries, as NAME:PORT, that mean a port which none of their devices has; the list takes it for none."""
        wrong = []
        for name, port in zip(self.names, self.ports):
            matched = self.matched(name, devices)
            number = _ANY if port is None else _atoi(port)
            if number != _ANY and matched and not any(str(number) in devices[device] for device in matched):
                wrong.append(f"{name}:{port}")
        return tuple(wrong)


def parse(text: str) -> NameList:
    """A list as it is written."""
    excludes = text.startswith("^")
    rest = text[1:] if excludes else text
    exact = rest.startswith("=")
    words = [word.partition(":") for word in (rest[1:] if exact else rest).split(",") if word.split(":")[0]]
    ports = tuple(port if colon else None for _, colon, port in words)
    return NameList(tuple(word[0] for word in words), exact, excludes, ports)


def _atoi(text: str) -> int:
    """What C's atoi makes of a text: ``01`` is 1, and what begins with no number is 0."""
    match = re.match(r"\s*([+-]?[0-9]{1,9})", text)
    return int(match[1]) if match else 0


def exact_list(names: Iterable[str], port: str = "") -> str:
    """The list that means exactly these devices, of each the one port if one is given."""
    return "=" + ",".join(f"{name}:{port}" if port else name for name in names)
