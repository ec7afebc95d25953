"""The rails' far side: one network namespace a lab, one bridge a rail, one veth pair a node and rail."""

import json
from dataclasses import dataclass
from pathlib import Path

from gpufab_cli.lab.machine import Identity, Machine, PortPlace
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


@dataclass(frozen=True)
class Plug:
    """One node's side of the rails: its number in the lab, its machine, and the site it is at."""

    netns: str
    number: int
    machine: Machine
    identity: Identity
    site: Site

    def connect(self, pid: int) -> None:
        """Puts the rails into the network namespace of a process, in place of older ones, as the site sets them up."""
        self.disconnect()
        outside, inside = [], []
        for rail, port in enumerate(self.machine.ports):
            far, near, mtu = end(self.number, rail), port.netdev, self.site.mtu
            mac = self.identity.mac(rail)
            outside += [
                f"link add {far} mtu {mtu} type veth peer name {near} address {mac} netns {pid}",
                f"link set {far} master rail{rail}",
                f"link set {far} up",
            ]
            inside += [f"link set {near} mtu {mtu}", f"link set {near} up", *self._above(rail, port)]
        run(["ip", "-n", self.netns, "-batch", "-"], "\n".join(outside))
        run(["nsenter", f"--net=/proc/{pid}/ns/net", "ip", "-batch", "-"], "\n".join(inside))

    def attach(self, pid: int, rail: int, index: int, name: str, mac: str) -> None:
        """Puts a VF's netdev into the network namespace of a process, with a cable to the rail."""
        far = f"{end(self.number, rail)}v{index}"
        mtu = self.site.mtu
        lines = [
            f"link add {far} mtu {mtu} type veth peer name {name} address {mac} netns {pid}",
            f"link set {far} master rail{rail}",
            f"link set {far} up",
        ]
        run(["ip", "-n", self.netns, "-batch", "-"], "\n".join(lines))

    def detach(self, rail: int, index: int) -> None:
        """Removes a VF's cable and with it its netdev, wherever that is."""
        run(["ip", "-n", self.netns, "link", "del", f"{end(self.number, rail)}v{index}"])

    def _above(self, rail: int, port: PortPlace) -> list[str]:
        """The address, and the interface that has it: a macvlan stands for a bond or VLAN, which not all kernels have.

        A bond's is on its first port: traffic takes that one.
        """
        holder, first = port.holder, next(p for p in self.machine.ports if p.holder == port.holder)
        address = f"addr add {self.site.ipv4.format(rail=rail, host=self.number)} dev {holder}"
        if holder == port.netdev:
            return [address]
        made = f"link add {holder} mtu {self.site.mtu} link {port.netdev} type macvlan mode bridge"
        return [made, address, f"link set {holder} up"] if first is port else []

    def disconnect(self) -> None:
        """Removes the node's cables, whichever are left."""
        links = json.loads(run(["ip", "-n", self.netns, "-json", "link", "show", "type", "veth"]) or "[]")
        ours = [link["ifname"] for link in links if link["ifname"].startswith(f"n{self.number}r")]
        run(["ip", "-n", self.netns, "-batch", "-"], "\n".join(f"link del {name}" for name in ours))
