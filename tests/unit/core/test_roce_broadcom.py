"""Broadcom's configfs on an emulated machine: what a step that fails leaves, seen and unseen."""

from dataclasses import replace

import pytest

from gpufab_cli.module_utils import before
from gpufab_cli.module_utils.change import ABSENT, Impact
from gpufab_cli.module_utils.converge import Order, converge
from gpufab_cli.module_utils.features import FEATURES
from gpufab_cli.module_utils.host import HostError
from gpufab_cli.module_utils.roce import bnxt
from gpufab_cli.module_utils.roce.want import PortWant, RoceWant
from tests.machine import LabHost

from .roce_node import QOS

ALL = Order(allow=frozenset(Impact))
ODD = {"ecn_enable": 0, "ecn_marking": 0, "cc_mode": 0, "roce_prio": 5, "cnp_dscp": 9, "cnp_prio": 2, "roce_dscp": 11}
"""What somebody has set before, and what the plan does not see of it: mode and priority of ECN that is off."""


@pytest.fixture
def host(tmp_path):
    host = LabHost(tmp_path, "l40s-broadcom", rails=1)
    place = host.hardware.machine.ports[0]
    host.hardware.change(place.netdev, lambda port: port.bnxt.update(ODD))
    return host


def place(host):
    return host.hardware.machine.ports[0]


def values(host):
    return {name: host.hardware.port(place(host).netdev).bnxt[name] for name in ODD}


def want(host, **changes):
    qos = replace(QOS, rdma_cm_tos=None, rdma_cm_mode=None, **changes)
    return RoceWant({"q": qos}, (PortWant("compute/0", place(host).pci, "q"),))


def settled(host):
    """Everything but Broadcom's own values is as wanted."""
    without = want(host, ecn=None, cnp_dscp=None, cnp_priority=None, traffic_class=None)
    converge(host, FEATURES["roce"], without, ALL)


def run(host):
    return converge(host, FEATURES["roce"], want(host), ALL).steps[-1]


def failing_at(host, name):
    """The last file of the step that is written is refused, once."""
    original = host.set

    def refusing(path, value):
        if path.endswith(f"/cc/{name}"):
            host.set = original
            raise HostError(f"cannot write {path}: Invalid argument")
        original(path, value)

    host.set = refusing


@pytest.mark.parametrize("there", [False, True], ids=["no directory", "directory there"])
def test_a_step_that_fails_leaves_every_value_as_it_was(host, there):
    settled(host)
    folder = f"{bnxt.CONFIGFS}/{place(host).rdma}"
    if there:
        host.make_directory(folder)
    failing_at(host, "roce_dscp")
    result = run(host)
    assert (result.status.value, result.reason.endswith("; undone")) == ("failed", True), result.reason
    assert values(host) == ODD
    assert host.exists(folder) == there
    assert before.kept(host, result.step) is None


def test_a_step_that_is_made_needs_no_undo(host):
    settled(host)
    assert run(host).status.value == "made"
    assert values(host) | {"roce_dscp": 26, "cc_mode": 1, "roce_prio": 3} == values(host)
    assert ABSENT not in values(host).values()
