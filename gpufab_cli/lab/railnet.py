"""The rails' far side: one network namespace a lab, one bridge a rail, one veth pair a node and rail."""

import json
from dataclasses import dataclass
from pathlib import Path

from gpufab_cli.lab.machine import Identity, Machine
from gpufab_cli.lab.shell import run, succeeds

# Address of the far side on each rail: never a node's, whose numbers start at 1.
_FAR_HOST = 254


@dataclass(frozen=True)
class Site:
    """What a site sets up itself and gpufab only checks: frame size in bytes and addresses."""

    mtu: int = 9000
    ipv4: str = "10.10.{rail}.{host}/24"


def path(netns: str) -> Path:
    """The file by which a named network namespace is entered."""
    return Path("/run/netns") / netns


def end(number: int, rail: int) -> str:
    """Name of the far end of a node's cable."""
    return f"n{number}r{rail}"


def create(netns: str, rails: int, site: Site) -> None:
    """Makes the namespace and its bridges; what is there stays."""
    if not path(netns).exists():
        run(["ip", "netns", "add", netns])
    lines = []
    for rail in range(rails):
        bridge = f"rail{rail}"
        if succeeds(["ip", "-n", netns, "link", "show", bridge]):
            continue
        lines += [
            f"link add {bridge} mtu {site.mtu} type bridge",
            f"addr add {site.ipv4.format(rail=rail, host=_FAR_HOST)} dev {bridge}",
            f"link set {bridge} up",
        ]
    run(["ip", "-n", netns, "-batch", "-"], "\n".join(["link set lo up", *lines]))


def delete(netns: str) -> None:
    """Removes the namespace with all that is in it."""
    if path(netns).exists():
        run(["ip", "netns", "del", netns])


def connect(netns: str, number: int, pid: int, machine: Machine, identity: Identity, site: Site) -> None:
    """Puts a node's rails into the network namespace of a process, in place of older ones, and sets up its site's part."""
    disconnect(netns, number)
    outside, inside = [], []
    for rail, port in enumerate(machine.ports):
        far, near = end(number, rail), port.netdev
        outside += [
            f"link add {far} mtu {site.mtu} type veth peer name {near} address {identity.mac(rail)} netns {pid}",
            f"link set {far} master rail{rail}",
            f"link set {far} up",
        ]
        inside += [
            f"link set {near} mtu {site.mtu}",
            f"addr add {site.ipv4.format(rail=rail, host=number)} dev {near}",
            f"link set {near} up",
        ]
    run(["ip", "-n", netns, "-batch", "-"], "\n".join(outside))
    run(["nsenter", f"--net=/proc/{pid}/ns/net", "ip", "-batch", "-"], "\n".join(inside))


def disconnect(netns: str, number: int) -> None:
    """Removes a node's cables, whichever are left."""
    links = json.loads(run(["ip", "-n", netns, "-json", "link", "show", "type", "veth"]) or "[]")
    ours = [link["ifname"] for link in links if link["ifname"].startswith(f"n{number}r")]
    run(["ip", "-n", netns, "-batch", "-"], "\n".join(f"link del {name}" for name in ours))
