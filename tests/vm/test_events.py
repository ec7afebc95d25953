"""Ports that go and come back while nobody touches the machine: the udev rule restores them."""

import pytest

from tests.vm.machine import wait
from tests.vm.ports_of import PCI, state
from tests.vm.site import RAILS

LIMIT_S = 180
"""Restored "within seconds" is some thirty of them where Python starts in one and programs in a tenth."""

WAYS = {
    "unbind-bind": "cd /sys/bus/pci/drivers/mlx5_core; echo {pci} >unbind; sleep 1; echo {pci} >bind",
    "remove-rescan": "echo 1 >/sys/bus/pci/devices/{pci}/remove; sleep 1; echo 1 >/sys/bus/pci/rescan",
}


@pytest.mark.parametrize("way", WAYS)
def test_a_port_that_came_back_is_restored(applied, sh, way, record_property):
    before = {port: state(sh, port) for port in ports()}
    sh("udevadm control --reload")
    sh(WAYS[way].format(pci=PCI[1]), timeout=300)
    seconds = restored(sh, before)
    record_property("seconds", seconds)
    assert sh("systemctl --failed --no-legend --plain") == ""


def ports():
    return [f"rail{number}" for number in range(RAILS)]


def restored(sh, before, limit=LIMIT_S):
    """Wait until all ports are as before; give the seconds of the machine's clock that it took."""
    start = _uptime(sh)
    found = {}

    def same():
        found.clear()
        found.update({port: state(sh, port) for port in before})
        return found == before

    try:
        wait(same, limit, "restored port")
    except TimeoutError:
        said = sh("journalctl -b --no-pager -u 'gpufab-restore*' -n 40")
        pytest.fail(f"after {limit} s {found}, before {before}\n{said}")
    return _uptime(sh) - start


def _uptime(sh):
    return float(sh("cut -d' ' -f1 /proc/uptime"))
