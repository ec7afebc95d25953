"""Other machines: systemd 252, and two machines with a wire between their rails."""

import pytest

from tests.vm import image, ports_of, timeline
from tests.vm.machine import Machine
from tests.vm.site import RAILS, Site

pytestmark = [pytest.mark.vm, pytest.mark.vm_full]

TOS = 26 << 2 | 2  # the fabric's class and ECN-capable transport, as the fabric forces them


@pytest.fixture
def machines(disk, say, tmp_path):
    """Makes machines and ends them."""
    made = []

    def make(suite="trixie", count=1):
        wire = tmp_path if count > 1 else None
        found = [Machine(image.ensure(say, suite), tmp_path, number + 1, wire=wire) for number in range(count)]
        made.extend(found)
        for machine in found:
            machine.start()
        for machine in found:
            machine.wait_up()
            machine.settle()
        return Site(tmp_path, found)

    yield make
    for machine in made:
        machine.close()


def _provision(site):
    site.cli("lock", "--timeout", "300")
    site.cli("render")
    site.apply()


def test_systemd_252(machines, say):
    site = machines("bookworm")
    machine = site.machines[0]
    assert "systemd 252" in machine.guest.root("systemctl --version")
    _provision(site)
    machine.reboot()
    assert machine.settle() == "running"
    say(timeline.table({"bookworm": timeline.read(machine.guest)}))
    site.audit()
    site.cli("verify")


def test_rdma_between_two_machines_has_the_fabrics_class(machines):
    """The class is what the program asks for: rxe takes no forced one."""
    site = machines(count=2)
    _provision(site)
    one, two = (machine.guest for machine in site.machines)
    one.root("ping -c 3 -W 5 10.10.0.2")
    one.root(f"systemd-run --unit=server ib_write_bw -d mlx5_0 --tclass={TOS} -n 200 -s 4096")
    one.root("sleep 5; cat /sys/class/infiniband/mlx5_0/ports/1/hw_counters/sent_pkts")
    sent = "cat /sys/class/infiniband/mlx5_0/ports/1/hw_counters/sent_pkts"
    before = int(two.root(sent))
    two.root(f"ib_write_bw -d mlx5_0 --tclass={TOS} -n 200 -s 4096 10.10.0.1")
    assert int(two.root(sent)) > before
    for guest in (one, two):
        assert all(ports_of.lossless(guest.root, f"rail{rail}") for rail in range(RAILS))


def test_a_rail_that_carries_ssh_is_left_alone_by_a_restore(machines):
    site = machines(count=2)
    _provision(site)
    one, two = (machine.guest for machine in site.machines)
    two.root(f"cat >/root/key <<'END'\n{one.key.read_text()}END\nchmod 600 /root/key")
    login = "ssh -i /root/key -o StrictHostKeyChecking=accept-new -o BatchMode=yes ops@10.10.0.1"
    two.root(f"systemd-run --unit=login {login} sleep 100000")
    two.root(f"{login} true")
    one.root("dcb pfc set dev rail0 prio-pfc 3:off; dcb pfc set dev rail1 prio-pfc 3:off")
    one.root("systemctl start gpufab-restore@late || :")
    assert [ports_of.lossless(one.root, port) for port in ("rail0", "rail1")] == [False, True]
    two.root("systemctl is-active login")
