"""Ports are waited for by what the kept wants name, on a clock in memory: some come late, some never."""

import pytest

from gpufab_cli.module_utils import arrival, desired
from gpufab_cli.module_utils.features import FEATURES
from gpufab_cli.module_utils.mpi.want import MpiWant
from gpufab_cli.module_utils.nccl_env.want import NcclEnvWant
from gpufab_cli.module_utils.numa.want import NumaWant
from gpufab_cli.module_utils.numa.want import PortWant as NumaPort
from gpufab_cli.module_utils.place import AWAITED
from gpufab_cli.module_utils.rails import RailWant
from gpufab_cli.module_utils.roce.want import PortWant, QosWant, RoceWant
from gpufab_cli.module_utils.sriov.want import PortWant as SriovPort
from gpufab_cli.module_utils.sriov.want import SriovWant
from tests.fakes import FakeHost

A, B = "0000:18:00.0", "0000:3b:00.0"
PCI = "/sys/bus/pci/devices"
QOS = QosWant(dscp_priority=(0,) * 64, pfc=(3,))


class Booting(FakeHost):
    """A node on which things happen at their second, as it sleeps."""

    def __init__(self, *wants):
        super().__init__()
        self.clock, self.events = 0.0, []
        self.files["/run/udev/control"] = ""
        for name, want in wants:
            self.files[desired.desired_path(name)] = desired.desired_text(name, want)

    def at(self, second, do, *args):
        self.events.append((second, lambda: do(*args)))
        self._happen()

    def sleep(self, seconds):
        self.clock += seconds
        self._happen()

    def _happen(self):
        due = [event for event in self.events if event[0] <= self.clock]
        self.events = [event for event in self.events if event[0] > self.clock]
        for _, do in due:
            do()

    def device(self, pci):
        self.files[f"{PCI}/{pci}/vendor"] = "0x15b3"

    def netdev(self, pci, name, index=7):
        self.device(pci)
        self.links[f"{PCI}/{pci}/driver"] = "../../../bus/pci/drivers/mlx5_core"
        self.files[f"{PCI}/{pci}/net/{name}/ifindex"] = str(index)
        self.files[f"/sys/class/net/{name}/ifindex"] = str(index)

    def rdma(self, pci, name="mlx5_0"):
        self.files[f"{PCI}/{pci}/infiniband/{name}/node_guid"] = "x"

    def rename(self, pci, old, new):
        del self.files[f"{PCI}/{pci}/net/{old}/ifindex"]
        self.netdev(pci, new)
        self.files["/run/udev/data/n7"] = ""


def roce(*pcis):
    return "roce", RoceWant({"q": QOS}, tuple(PortWant(f"compute/{i}", pci, "q") for i, pci in enumerate(pcis)))


def run(host, *, seconds=60, device=None, results=(True,)):
    """What a restore was begun at, and whether all was well."""
    began, left = [], list(results)

    def restore():
        began.append(host.clock)
        return left.pop(0) if left else True

    return began, arrival.brought(host, "early" if device is None else "device", device, seconds, restore)


def test_a_node_with_all_its_ports_does_not_wait(capsys):
    host = Booting(roce(A))
    host.netdev(A, "enp1")
    host.rdma(A)
    assert run(host) == ([0.0], True)
    assert capsys.readouterr().err == ""


def test_the_restore_begins_when_the_last_port_has_its_rdma_device(capsys):
    host = Booting(roce(A, B))
    host.at(12, host.netdev, A, "eth0")
    host.at(13, host.rdma, A)
    host.at(14, host.netdev, B, "eth1")
    host.at(19, host.rdma, B, "mlx5_1")
    assert run(host) == ([19.0], True)
    assert "early: the ports are there after 19 s" in capsys.readouterr().err


def test_a_port_that_never_comes_costs_the_limit_once_and_is_named(capsys):
    host = Booting(roce(A, B))
    host.netdev(A, "eth0")
    host.rdma(A)
    assert run(host) == ([60.0], True)
    assert f"early: compute/1 ({B}) did not come within 60 s: no such device" in capsys.readouterr().err
    assert run(host)[0] == [60.0], "waited for again in the same boot"


def test_what_is_lacking_is_said():
    host = Booting()
    port = arrival.Port(A, "compute/0", netdev=True, rdma=True)
    assert arrival.lacks(host, port) == "no such device"
    host.device(A)
    assert arrival.lacks(host, port) == "no driver has it"
    host.links[f"{PCI}/{A}/driver"] = "x"
    assert arrival.lacks(host, port) == "no network interface"
    host.netdev(A, "eth0")
    assert arrival.lacks(host, port) == "no RDMA device"
    host.files["/sys/class/net/eth0/bonding_slave/perm_hwaddr"] = "x"
    assert arrival.lacks(host, port) == ""


def test_an_interface_that_udev_still_has_to_rename_is_waited_for():
    host = Booting(roce(A))
    host.files["/run/udev/queue"] = ""
    host.netdev(A, "eth0")
    host.rdma(A)
    host.files["/run/udev/data/+infiniband:mlx5_0"] = ""
    host.at(3, host.rename, A, "eth0", "enp1")
    assert run(host) == ([3.0], True)


def test_udev_that_does_not_come_to_an_end_is_waited_for_a_short_time_only():
    host = Booting(roce(A))
    host.files["/run/udev/queue"] = ""
    host.netdev(A, "eth0")
    host.rdma(A)
    assert run(host) == ([arrival.SETTLE], True)


@pytest.mark.parametrize("good", [True, False])
def test_a_rename_while_the_restore_works_has_it_made_once_more(good):
    host = Booting(roce(A))
    host.netdev(A, "eth0")
    host.rdma(A)
    rounds = []

    def restore():
        rounds.append(1)
        if len(rounds) == 1:
            host.rename(A, "eth0", "enp1")
            return False
        return good

    assert arrival.brought(host, "early", None, 60, restore) is good
    assert len(rounds) == 2


def test_a_port_that_comes_anew_all_the_time_ends():
    host = Booting(roce(A))
    host.netdev(A, "eth0")
    host.rdma(A)
    rounds = []

    def restore():
        rounds.append(1)
        host.inodes[f"{PCI}/{A}/net/eth0"] = 100 + len(rounds)
        return True

    assert arrival.brought(host, "device", A, 0, restore)
    assert len(rounds) == arrival.ROUNDS


def test_one_port_s_event_waits_for_the_rest_of_that_port_alone():
    host = Booting(roce(A, B))
    host.files[AWAITED] = ""
    host.netdev(A, "eth0")
    host.at(4, host.rdma, A)
    assert run(host, device=A) == ([4.0], True)
    assert run(host, device="0000:99:00.0")[0] == [4.0], "a port that nobody wants is not waited for"
    assert run(host, device=B)[0] == [4.0 + arrival.DEVICE_WAIT]


def test_udev_events_count_from_before_the_ports_are_looked_at():
    host = Booting(roce(A))
    host.at(5, host.netdev, A, "eth0")
    host.at(5, host.rdma, A)

    def restore():
        assert AWAITED in host.files
        return True

    assert AWAITED not in host.files
    assert arrival.brought(host, "early", None, 60, restore)


def test_no_wait_where_the_site_wants_none():
    assert run(Booting(roce(A)), seconds=0) == ([0.0], True)


@pytest.mark.parametrize("text", ["{", "[]", '{"format": 9}'])
def test_a_damaged_want_does_not_cost_the_restore_its_turn(text):
    host = Booting(roce(A))
    host.files[desired.desired_path("sriov")] = text
    host.netdev(A, "eth0")
    host.rdma(A)
    assert run(host) == ([0.0], True)


def test_a_mistake_while_waiting_does_not_cost_the_restore_its_turn(monkeypatch, capsys):
    def stumble(*_):
        raise ValueError("oops")

    monkeypatch.setattr(arrival, "lacks", stumble)
    assert run(Booting(roce(A))) == ([0.0], True)
    assert "waiting for ports: ValueError: oops" in capsys.readouterr().err


def test_every_restored_feature_says_which_ports_it_needs():
    assert set(arrival.NEEDS) == {name for name, feature in FEATURES.items() if feature.restored}


def needs(name, want):
    host = Booting((name, want))
    return [(p.pci, p.netdev, p.rdma) for p in arrival.needed(host)]


def test_what_each_want_needs_of_its_ports():
    rail = RailWant("compute/0", A, "roce")
    assert needs(*roce(A)) == [(A, True, True)]
    assert needs("sriov", SriovWant((SriovPort("c/0", A, (), mac="00:00:00:00:00:01"),))) == [(A, True, False)]
    guid = "00:00:00:00:00:00:00:01"
    assert needs("sriov", SriovWant((SriovPort("c/0", A, (), guid=guid),))) == [(A, False, True)]
    assert needs("numa", NumaWant((NumaPort("c/0", A, 0),))) == [(A, False, True)]
    assert needs("nccl_env", NcclEnvWant((rail,), socket_ports=(B,))) == [(A, False, True), (B, True, False)]
    assert needs("mpi", MpiWant("openmpi", (rail,))) == [(A, False, True)]


def test_wants_that_name_one_port_are_one_wait_for_all_of_it():
    host = Booting(
        ("sriov", SriovWant((SriovPort("c/0", A, ()),))), ("mpi", MpiWant("openmpi", (RailWant("c/0", A, "roce"),)))
    )
    assert arrival.needed(host) == (arrival.Port(A, "c/0", netdev=True, rdma=True),)


@pytest.mark.parametrize(
    ("argv", "words", "seconds"),
    [
        (["early", "--wait", "60"], ["early"], 60),
        (["late"], ["late"], 0),
        (["device", A], ["device", A], 0),
        (["early", "--wait", "x"], ["early", "--wait", "x"], 0),
        (["--wait", "60"], [], 60),
        ([], [], 0),
    ],
)
def test_the_words_of_the_units(argv, words, seconds):
    assert arrival.split(argv) == (words, seconds)
