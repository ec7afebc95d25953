"""A reboot, with everything an operator's node has: renames, a service that starts jobs, a network service."""

import json

import pytest

from tests.vm.ports_of import state
from tests.vm.site import RAILS

pytestmark = pytest.mark.vm

# Writes down what each port was like at the moment it started.
_WITNESS = """\
#!/bin/sh
for port in /sys/class/net/rail*; do
    port=${port##*/}
    printf '%s %s %s\\n' "$(cut -d' ' -f1 /proc/uptime)" "$port" "$(dcb pfc show dev "$port" | tr -s ' \\n' ' ')"
done >"/var/lib/witness-$1"
ls /sys/class/net | grep -c '^rail[0-9]$' >>"/var/lib/witness-$1" || :
"""
_UNIT = """\
[Unit]
Description=witness: {name}
{order}
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/witness {name}
[Install]
WantedBy=multi-user.target
"""
WITNESSES = {
    "slurmd": "",  # the site's own says nothing about ports
    "network": "After=network-pre.target\nBefore=systemd-networkd.service network.target",
}


def install_witnesses(sh):
    """Services that record how the ports were when they started."""
    sh(f"cat >/usr/local/sbin/witness <<'END'\n{_WITNESS}END\nchmod 755 /usr/local/sbin/witness")
    for name, order in WITNESSES.items():
        unit = _UNIT.format(name=name, order=order)
        sh(f"cat >/etc/systemd/system/{_service(name)} <<'END'\n{unit}END\nsystemctl -q enable {_service(name)}")


def _service(name):
    return "slurmd.service" if name == "slurmd" else f"witness-{name}.service"


@pytest.fixture(scope="module")
def rebooted(world, first_apply):
    """The machine after a reboot, its settings before it and systemd's state after it."""
    if "applied" not in world.kept:
        pytest.fail("the first apply failed")
    world.to("applied")
    sh = world.machine.guest.root
    install_witnesses(sh)
    world.site.apply(rc=None)  # a service that starts jobs is there now
    before = {port: state(sh, port) for port in _ports()}
    systemd = world.boot("boot 1")
    world.keep("rebooted")
    return before, systemd


@pytest.fixture
def after(world, rebooted):
    world.to("rebooted")
    return rebooted


def _ports():
    return [f"rail{number}" for number in range(RAILS)]


def test_no_unit_failed_and_the_system_runs(after, sh):
    assert (sh("systemctl --failed --no-legend --plain"), after[1]) == ("", "running")


def test_audit_is_clean_after_a_reboot(world, after):
    world.site.audit()


def test_ports_and_vfs_are_as_before(world, after, sh):
    assert {port: state(sh, port) for port in _ports()} == after[0]


@pytest.mark.parametrize("name", WITNESSES)
def test_nothing_starts_before_the_ports_are_lossless(after, sh, name):
    *rows, count = sh(f"cat /var/lib/witness-{name}").splitlines()
    assert int(count) == RAILS, "it started before the ports were there"
    assert len(rows) == RAILS
    assert all("3:on" in row for row in rows), rows


def test_a_second_boot_is_no_accident(world, after):
    assert world.boot("boot 2") == "running"
    world.state = "changed"
    world.site.audit()


def test_witnesses_can_tell(applied, sh):
    """What a witness writes about a port that is not lossless."""
    install_witnesses(sh)
    sh("dcb pfc set dev rail0 prio-pfc 3:off && systemctl start slurmd")
    assert [("3:on" in row) for row in sh("cat /var/lib/witness-slurmd").splitlines()[:-1]] == [False, True]
    assert json.loads(sh("dcb -j pfc show dev rail0"))["prio_pfc"][3] is False
