"""A reboot, with everything an operator's node has: renames, a service that starts jobs, a network service."""

import json

import pytest

from tests.vm import witnesses
from tests.vm.ports_of import state
from tests.vm.site import RAILS

pytestmark = pytest.mark.vm


@pytest.fixture(scope="module")
def rebooted(world, first_apply):
    """The machine after a reboot, its settings before it and systemd's state after it."""
    if "applied" not in world.kept:
        pytest.fail("the first apply failed")
    world.to("applied")
    before = {port: state(world.machine.guest.root, port) for port in _ports()}
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


@pytest.mark.parametrize("name", witnesses.WITNESSES)
def test_nothing_starts_before_the_ports_are_lossless(after, sh, name):
    *rows, count = sh(f"cat /var/lib/witness-{name}").splitlines()
    assert int(count) == RAILS, "it started before the ports were there"
    assert len(rows) == RAILS
    assert all("3:on" in row for row in rows), rows


@pytest.mark.vm_full
def test_a_second_boot_is_no_accident(world, after):
    assert world.boot("boot 2") == "running"
    world.state = "changed"
    world.site.audit()


def test_witnesses_can_tell(applied, sh):
    """What a witness writes about a port that is not lossless."""
    sh("dcb pfc set dev rail0 prio-pfc 3:off && systemctl restart slurmd")
    assert [("3:on" in row) for row in sh("cat /var/lib/witness-slurmd").splitlines()[:-1]] == [False, True]
    assert json.loads(sh("dcb -j pfc show dev rail0"))["prio_pfc"][3] is False
