"""Ports that go and come back while nobody touches the machine: the udev rule restores them."""

import pytest

from tests.vm.machine import wait
from tests.vm.ports_of import PCI, state
from tests.vm.site import RAILS

pytestmark = pytest.mark.vm

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


@pytest.mark.vm_full
def test_a_driver_that_was_loaded_anew(applied, sh):
    before = {port: state(sh, port) for port in ports()}
    sh("modprobe -r mlx5_core; sleep 2; modprobe mlx5_core")
    restored(sh, before)
    assert sh("systemctl --failed --no-legend --plain") == ""


@pytest.mark.vm_full
def test_a_port_that_the_hypervisor_took_and_gave_back(applied, sh):
    machine = applied.machine
    before = {port: state(sh, port) for port in ports()}
    nic = machine.nics[1]
    machine.unplug(nic)
    wait(lambda: "rail1" not in sh("ls /sys/class/net"), 60, "unplugged port")
    machine.plug(nic, f"port{nic.number}")
    restored(sh, before)


@pytest.mark.vm_full
@pytest.mark.parametrize("holder", ["namespace", "vfio"])
def test_a_vf_that_somebody_holds_is_left_alone(applied, sh, holder):
    before = {port: state(sh, port) for port in ports()}
    pci = sh("basename $(readlink -f /sys/class/net/rail0/device/virtfn0)").strip()
    if holder == "namespace":
        sh(f"ip netns add guest; name=$(ls /sys/bus/pci/devices/{pci}/net); ip link set $name netns guest")
        held = "ip netns exec guest ls /sys/class/net | grep -v '^lo$'"
    else:
        sh(
            f"modprobe vfio-pci; cd /sys/bus/pci/devices/{pci}; echo vfio-pci >driver_override; "
            f"[ ! -e driver ] || echo {pci} >driver/unbind; echo {pci} >/sys/bus/pci/drivers_probe"
        )
        held = f"basename $(readlink -f /sys/bus/pci/devices/{pci}/driver)"
    holds = sh(held)
    sh("systemctl start gpufab-restore@late")
    assert (sh(held), {port: state(sh, port) for port in ports()}) == (holds, before)
    applied.site.audit(rc=None)
