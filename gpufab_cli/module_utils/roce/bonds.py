"""The bond that makes one RoCE LAG of two ports: read and judged; it is the site's, and nothing of it is ever set.

Sources: Documentation/networking/bonding.rst, drivers/net/bonding/bond_sysfs.c and bond_sysfs_slave.c.
"""

from typing import Iterator, Union

from ..change import ABSENT, Absent, Finding, Path, Unknown
from ..devices import NET, Devices, Netdev, Nic
from ..host import Reader
from ..texts import natural
from .seen import BondSeen
from .want import BondWant

CODE = "roce.bond"
NO_LACP = ("", "N/A")
"""What files about aggregators hold in modes without them."""


def read(host: Reader, netdev: Netdev) -> Union[BondSeen, Absent]:
    """The bond of a port; ABSENT when it is in none."""
    if netdev.bond is None:
        return ABSENT
    above, below = f"{NET}/{netdev.bond.name}/bonding", f"{NET}/{netdev.name}/bonding_slave"
    mode, link = host.read(f"{above}/mode"), host.read(f"{below}/mii_status")
    return BondSeen(
        netdev.bond.name,
        mode.partition(" ")[0] if isinstance(mode, str) else Unknown(f"{above}/mode: {mode}"),
        link if isinstance(link, str) else Unknown(f"{below}/mii_status: {link}"),
        _joined(host, f"{above}/ad_aggregator", f"{below}/ad_aggregator_id"),
    )


def _joined(host: Reader, active: str, own: str) -> Union[bool, Absent, Unknown]:
    texts = [host.read(path) for path in (active, own)]
    if all(text is ABSENT or text in NO_LACP for text in texts):
        return ABSENT
    numbers = [natural(text) for text in texts]
    if None in numbers:
        return Unknown(f"{active} is {texts[0]!r}, {own} is {texts[1]!r}")
    return numbers[0] == numbers[1]


def findings(
    path: Path, devices: Devices, nic: Nic, want: BondWant, seen: Union[BondSeen, Absent, None]
) -> Iterator[Finding]:
    """What is otherwise with a port's bond than the fabric wants."""
    name = nic.netdev.name if nic.netdev is not None else nic.pci
    if seen is None:
        yield Finding(CODE, path, "not looked at: the snapshot was taken for another wish", unknown=True)
    elif isinstance(seen, Absent):
        yield Finding(CODE, path, f"{name} is in no bond, the fabric wants it in {want.name}")
    elif seen.name != want.name:
        yield Finding(CODE, path, f"{name} is in {seen.name}, the fabric wants it in {want.name}")
    else:
        yield from _mode(path, want, seen)
        yield from _degraded(path, name, seen)
        yield from _lag(path, devices, nic, seen)


def _mode(path: Path, want: BondWant, seen: BondSeen) -> Iterator[Finding]:
    if want.mode is None or seen.mode == want.mode:
        return
    if isinstance(seen.mode, Unknown):
        yield Finding(CODE, path, seen.mode.reason, unknown=True)
    else:
        yield Finding(CODE, path, f"{seen.name} is {seen.mode}, the fabric wants {want.mode}")


def _degraded(path: Path, name: str, seen: BondSeen) -> Iterator[Finding]:
    for value in (seen.link, seen.joined):
        if isinstance(value, Unknown):
            yield Finding(CODE, path, value.reason, unknown=True)
    if isinstance(seen.link, str) and seen.link != "up":
        yield Finding(CODE, path, f"{seen.name} takes the link of {name} for {seen.link}")
    elif seen.joined is False:
        yield Finding(CODE, path, f"{name} carries nothing of {seen.name}: it is not in the active aggregator")


def _lag(path: Path, devices: Devices, nic: Nic, seen: BondSeen) -> Iterator[Finding]:
    """While mlx5 runs two ports as a LAG, one RDMA device stands for both; else RDMA knows nothing of the bond."""
    names = [rdma.name for member in (nic, *devices.bonded_with(nic)) for rdma in member.rdma]
    if len(names) > 1:
        yield Finding(CODE, path, f"{seen.name} has RDMA devices {', '.join(sorted(names))}: it is no RoCE LAG")
