"""The list that NCCL_IB_HCA and NCCL_SOCKET_IFNAME hold: which names it means, and which it matches.

``[^][=]NAME[:PORT],...``: names are prefixes unless ``=`` is given, so that ``mlx5_1`` also takes ``mlx5_10``; ``^``
leaves out (NVIDIA/nccl, parseStringList and matchIfList).
"""

from dataclasses import dataclass
from typing import Iterable, Mapping, Tuple


@dataclass(frozen=True)
class NameList:
    """A list as NCCL reads it: names, and the port of each, "" where any is meant."""

    names: Tuple[str, ...]
    exact: bool
    excludes: bool
    ports: Tuple[str, ...] = ()

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
            if port and matched and not any(port in devices[device] for device in matched):
                wrong.append(f"{name}:{port}")
        return tuple(wrong)


def parse(text: str) -> NameList:
    """A list as it is written."""
    excludes = text.startswith("^")
    rest = text[1:] if excludes else text
    exact = rest.startswith("=")
    words = [word.partition(":") for word in (rest[1:] if exact else rest).split(",") if word]
    return NameList(tuple(word[0] for word in words), exact, excludes, tuple(word[2] for word in words))


def exact_list(names: Iterable[str], port: str = "") -> str:
    """The list that means exactly these devices, of each the one port if one is given."""
    return "=" + ",".join(f"{name}:{port}" if port else name for name in names)
