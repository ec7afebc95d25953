"""Ports that udev and rdma-core rename while a step is made, VF drivers that come late, and ports that are down."""

from dataclasses import replace

import pytest

from gpufab_cli.intent.qos import qos_want
from gpufab_cli.lab.hardware import sriov
from gpufab_cli.module_utils import desired, named, planning
from gpufab_cli.module_utils.change import Impact
from gpufab_cli.module_utils.converge import Order, Status, converge
from gpufab_cli.module_utils.features import FEATURES
from gpufab_cli.module_utils.host import HostError
from gpufab_cli.module_utils.restore import EARLY, restore
from gpufab_cli.module_utils.roce.want import PortWant, RoceWant
from gpufab_cli.module_utils.sriov.apply import DRIVER_SECONDS
from tests import fabrics
from tests.fakes import FakeHost, failed
from tests.machine import LabHost

from .test_sriov_machine import ALL, FEATURE, PCI, drift, place, ran, settle, vfs, wish


class Renaming(LabHost):
    """A machine whose devices may get other names; by its old name nothing finds one."""

    def __init__(self, *args, **kwargs):
        self.old = {}
        self.when = lambda *event: False
        super().__init__(*args, **kwargs)

    def rename(self, **names):
        self.old.update({new: old for old, new in names.items()})

    def _event(self, *event):
        if self.when(*event):
            self.when = lambda *event: False
            self.rename(enp24s0np0="rail0", mlx5_0="rocep24s0")

    def _gone(self, words):
        return bool(set(words) & set(self.old.values()))

    def _plain(self, path):
        return "/".join(self.old.get(part, part) for part in path.split("/"))

    def _entry(self, path):
        return None if self._gone(path.split("/")) else super()._entry(self._plain(path))

    def names(self, path):
        found, new = super().names(path), {old: name for name, old in self.old.items()}
        return tuple(sorted(new.get(name, name) for name in found)) if isinstance(found, tuple) else found

    def _answer(self, argv):
        if self._gone(argv):
            return failed(f'Cannot find device "{argv[-1]}"')
        answer = super()._answer(tuple(self.old.get(word, word) for word in argv))
        self._event(*argv)
        return answer

    def batch(self, commands):
        if any(self._gone(command) for command in commands):
            return failed("Cannot find device")
        return super().batch([[self.old.get(word, word) for word in command] for command in commands])

    def set(self, path, value):
        super().set(path, value)
        self._event(path, value)

    def make_directory(self, path):
        super().make_directory(self._plain(path))

    def sleep(self, seconds):
        self._event("sleep")


@pytest.fixture
def host(tmp_path):
    return Renaming(tmp_path)


VF_EVENTS = {
    "once the count is written": lambda *event: event[0].endswith("/sriov_numvfs") and event[1] == "3",
    "once the VFs are read": lambda *event: event[:3] == ("ip", "-d", "-j"),
    "between two VFs": lambda *event: "vf" in event and "1" in event,
    "once all are set": lambda *event: event[0].endswith("/drivers_probe"),
}


@pytest.mark.parametrize("when", VF_EVENTS.values(), ids=VF_EVENTS)
def test_vfs_are_made_though_their_port_is_renamed_meanwhile(host, when):
    host.when = when
    outcome = converge(host, FEATURE, wish(3), ALL)
    assert host.old, "nothing was renamed"
    assert ran(outcome)["sriov compute/0"] == ("made", "")
    assert [v.mac for v in vfs(host)] == [f"02:aa:00:00:00:0{i}" for i in range(3)]
    assert drift(host, wish(3)) == set()


def test_what_fails_for_another_reason_than_a_rename_is_not_tried_again():
    tries = []

    def act(name):
        tries.append(name)
        raise HostError("no")

    with pytest.raises(HostError, match="no"):
        named.by_name(lambda: "eth0", act)
    assert tries == ["eth0"]


def test_a_port_that_is_gone_is_told_by_what_failed():
    def act(_):
        del host.files[f"/sys/bus/pci/devices/{PCI}/net/eth0/mtu"]
        raise HostError("ip: Cannot find device")

    host = FakeHost({f"/sys/bus/pci/devices/{PCI}/net/eth0/mtu": "1500"})
    with pytest.raises(HostError, match="Cannot find device"):
        named.by_name(lambda: named.netdev(host, PCI), act)


ROCE = FEATURES["roce"]
ROCE_EVENTS = {
    "while the link comes back": lambda *event: event == ("sleep",),
    "once the map is written": lambda *event: event[:2] == ("dcb", "app") and "show" not in event,
    "once pause is off": lambda *event: event[:2] == ("ethtool", "-A"),
    "once RDMA-CM has its defaults": lambda *event: event[0].endswith("/default_roce_mode"),
}


@pytest.mark.parametrize("when", ROCE_EVENTS.values(), ids=ROCE_EVENTS)
def test_a_port_is_made_lossless_though_it_is_renamed_meanwhile(host, when):
    (qos,) = fabrics.spec().qos.values()
    want = RoceWant({"dcqcn": qos_want(qos)}, (PortWant("compute/0", PCI, "dcqcn"),))
    host.when = when
    outcome = converge(host, ROCE, want, ALL)
    assert host.old, "nothing was renamed"
    assert ran(outcome)["roce compute/0"] == ("made", "")
    snapshot = planning.take(host, {"roce": ROCE}, {"roce": want})
    assert planning.plan(ROCE, snapshot, want).steps == ()


def late_driver(host, after):
    """The VFs' driver is a module of its own: it is there after so many looks, and then takes what it may."""
    plain, waits = host.set, []
    unloaded = [True]

    def probing(path, value):
        if not (path.endswith("/drivers_probe") and unloaded):
            plain(path, value)

    def sleep(seconds):
        waits.append(seconds)
        if sum(waits) > after and unloaded:
            unloaded.clear()
            for index, vf in enumerate(vfs(host)):
                if not vf.driver and host.hardware.port(place(host).netdev).sriov.autoprobe:
                    sriov.bind(host.hardware, place(host), index, "mlx5_core")

    host.set, host.sleep = probing, sleep
    return waits


def test_a_vf_driver_that_is_loaded_late_is_waited_for(host):
    waits = late_driver(host, 3)
    settle(host, wish(2))
    assert [v.driver for v in vfs(host)] == ["mlx5_core"] * 2
    assert 3 < sum(waits) < DRIVER_SECONDS


def test_one_that_does_not_come_is_waited_for_so_long_and_told_from_one_that_refuses(host):
    waits = late_driver(host, 3600)
    status, reason = ran(converge(host, FEATURE, wish(2), ALL))["sriov compute/0"]
    assert status == "failed"
    assert f"still no driver for 0000:18:00.2, 0000:18:00.3 after {DRIVER_SECONDS} s" in reason
    assert sum(waits) < 3 * DRIVER_SECONDS


def test_a_driver_that_refuses_is_not_waited_for(host):
    plain, waits = host.set, []

    def refusing(path, value):
        if path.endswith("/drivers_probe"):
            raise HostError(f"cannot write {path}: Cannot allocate memory")
        plain(path, value)

    host.set, host.sleep = refusing, waits.append
    status, reason = ran(converge(host, FEATURE, wish(2), ALL))["sriov compute/0"]
    assert (status, waits) == ("failed", [])
    assert "a driver refuses 0000:18:00.2: cannot write /sys/bus/pci/drivers_probe: Cannot allocate memory" in reason


@pytest.fixture
def broadcom(tmp_path):
    """A machine whose ports are bnxt_en's, and down."""
    host = LabHost(tmp_path)
    machine = host.hardware.machine
    host.hardware.machine = replace(machine, nic=replace(machine.nic, driver="bnxt_en"))
    host.hardware.node.down.add(place(host).netdev)
    return host


def down(host):
    return place(host).netdev in host.hardware.node.down


def test_bnxt_s_port_is_set_up_before_its_vfs_are_made(broadcom):
    (step,) = (r.step for r in converge(broadcom, FEATURE, wish(2), replace(ALL, check=True)).steps[1:])
    assert step.impact == {Impact.TRAFFIC, Impact.LINK_FLAP}
    assert [change.code for change in step.changes[:2]] == ["sriov.port-down", "sriov.count"]
    settle(broadcom, wish(2))
    assert (len(vfs(broadcom)), down(broadcom)) == (2, False)


def test_it_takes_consent_to_the_link_and_a_port_of_the_node_s_own_its_own(broadcom):
    order = Order(allow=frozenset({Impact.TRAFFIC}))
    assert ran(converge(broadcom, FEATURE, wish(2), order))["sriov compute/0"] == ("refused", "needs --allow link-flap")
    assert down(broadcom)


def test_a_restore_sets_it_up(broadcom):
    settle(broadcom, wish(2))
    broadcom.boot()
    broadcom.hardware.node.down.add(place(broadcom).netdev)
    assert restore(broadcom, EARLY)
    assert (len(vfs(broadcom)), down(broadcom)) == (2, False)


def test_one_that_fails_afterwards_is_down_again(broadcom):
    plain = broadcom.set

    def refusing(path, value):
        if path.endswith("/sriov_numvfs") and value != "0":
            raise HostError(f"cannot write {path}: Cannot allocate memory")
        plain(path, value)

    broadcom.set = refusing
    status, reason = ran(converge(broadcom, FEATURE, wish(2), ALL))["sriov compute/0"]
    assert (status, reason.endswith("; undone")) == ("failed", True), reason
    assert down(broadcom)


def test_one_that_stays_down_makes_no_vfs_and_is_told(broadcom):
    plain = broadcom._answer
    broadcom._answer = lambda argv: plain(("ip", "-j", "addr", "show") if argv[-1] == "up" else argv)
    status, reason = ran(converge(broadcom, FEATURE, wish(2), ALL))["sriov compute/0"]
    assert status == "failed"
    assert reason.startswith(f"{PCI} was set up and is not after 5 s")
    assert vfs(broadcom) == []


def test_a_port_of_which_that_cannot_be_read_is_left_alone(broadcom):
    plain = broadcom.read_bytes
    broadcom.read_bytes = lambda path: b"junk\n" if path.endswith("np0/flags") else plain(path)
    assert ran(converge(broadcom, FEATURE, wish(2), ALL))["sriov compute/0"][0] == Status.UNKNOWN.value
    assert vfs(broadcom) == []


def test_one_that_wants_none_or_has_them_is_not_set_up(broadcom):
    settle(broadcom, wish(0))
    assert down(broadcom)
    broadcom.hardware.node.down.clear()
    settle(broadcom, wish(2))
    broadcom.hardware.node.down.add(place(broadcom).netdev)
    assert drift(broadcom, wish(2)) == set()
    assert desired.digest(broadcom, "sriov") == desired.wish_digest("sriov", wish(2))
