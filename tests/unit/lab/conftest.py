"""A machine without a host below it: no cables, no mounts, and interfaces that are only said to exist."""

import pytest

from gpufab_cli.lab import machine
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.netdev import no_device
from gpufab_cli.lab.hardware.sysfs.tree import Directory

PORT = "enp24s0np0"


class FakeNode:
    """Interfaces as a node would have them."""

    def __init__(self, hardware):
        self.pid = 1
        self.interfaces = {"lo": (772, "00:00:00:00:00:00"), "eth0": (1, "0a:00:00:00:00:01")}
        for rail, port in enumerate(hardware.machine.ports):
            self.interfaces[port.netdev] = (1, hardware.identity.mac(rail))
        self.mtus = dict.fromkeys(self.interfaces, 9000)
        self.down = set()
        self.without_carrier = set()

    def names(self):
        return list(self.interfaces)

    def _of(self, name):
        if name not in self.interfaces:
            raise no_device()
        return self.interfaces[name]

    def hardware_type(self, name):
        return self._of(name)[0]

    def is_ethernet(self, name):
        return self.hardware_type(name) == 1

    def mac(self, name):
        return self._of(name)[1]

    def mtu(self, name):
        return self.mtus[name]

    def set_mtu(self, name, mtu):
        self.mtus[name] = mtu

    def index(self, name):
        return self.names().index(name) + 1

    def flags(self, name):
        return 0x1042 if name in self.down else 0x1043

    def admin_up(self, name):
        return name not in self.down

    def carrier(self, name):
        return name not in self.without_carrier

    def counters(self, name):
        return list(range(16))

    def ipv4(self, name):
        return ["10.10.0.1"] if name == PORT else []

    def ipv6(self, name):
        return [bytes.fromhex("fe80" + "00" * 13 + "01")] if name == PORT else []


def whole(tree, path="/"):
    """Every entry below a directory, by path."""
    entries = {}
    for name in tree.get(path).names:
        entry = tree.get(below := f"{path.rstrip('/')}/{name}")
        entries[below] = entry
        if isinstance(entry, Directory):
            entries |= whole(tree, below)
    return entries


@pytest.fixture
def hw(tmp_path):
    return Hardware(machine.load("hgx-h100"), machine.Identity("gpu01"), tmp_path / "state.json")


@pytest.fixture
def running(hw):
    hw.node = FakeNode(hw)
    return hw
