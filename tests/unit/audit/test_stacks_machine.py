"""One machine of each NIC stack, in memory: what the audit says of every fault, and what a run then makes of it."""

import pytest

from gpufab_cli.audit.collect import Collected
from gpufab_cli.audit.judge import judge
from gpufab_cli.lab.hardware import control, drift
from gpufab_cli.lab.hardware.state import Fault
from gpufab_cli.lab.hardware.tools.mlnx_qos_print import FAULT as RELEASE
from gpufab_cli.lab.hardware.tools.mlnx_qos_print import RELEASES as RELEASE_NAMES
from gpufab_cli.module_utils import devices, planning
from gpufab_cli.module_utils.change import Impact, Unknown
from gpufab_cli.module_utils.converge import Order, converge
from gpufab_cli.module_utils.features import FEATURES
from gpufab_cli.spec import source
from gpufab_cli.spec.draft import draft
from gpufab_cli.spec.load import validate
from gpufab_cli.spec.lock import Lock
from gpufab_cli.spec.model import FabricSpec
from tests.fabrics import compiled
from tests.lab.test_roce_stacks import MACHINES, SPEC
from tests.machine import LabHost

ALL = Order(allow=frozenset(Impact))


class Node(LabHost):
    """A machine of the lab that is as declared; each test does something to it."""

    def __init__(self, folder, name):
        super().__init__(folder, MACHINES[name], name, rails=None)
        self.name, self.broken = name, {}
        rails = self.hardware.machine.ports
        self.give(**{port.netdev: f"10.10.{rail}.{name[1:]}/24" for rail, port in enumerate(rails)})
        self.declare()

    def declare(self, *takeover):
        """Wants what the fabric says of this machine, with DCBX taken over or not."""
        head, _, rest = SPEC.partition("hosts:\n")
        lines = [line for line in rest.splitlines() if not line.startswith("  - ") or f"name: {self.name}," in line]
        text = "\n".join([head, "hosts:", *lines])
        if takeover:
            text = text.replace("plain: {", f"plain: {{takeover: [{', '.join(takeover)}], ")
        fabric = validate(source.parse(text, "f"), FabricSpec)
        drafted = draft(fabric, Lock(), {self.name: devices.gather(self)})
        assert drafted.errors == ()
        self.wants = {"roce": compiled(fabric, drafted.lock)[self.name]["roce"]}

    def _answer(self, argv):
        if argv[0] in self.broken:
            return self.broken[argv[0]]
        return super()._answer(argv)

    def installed(self, program):
        return program not in self.broken and super().installed(program)

    def rows(self):
        snapshot = planning.take(self, {"roce": FEATURES["roce"]}, self.wants)
        return judge(Collected(self.name, snapshot), self.wants).rows

    def codes(self):
        return {row.code for row in self.rows()}

    def kinds(self):
        return {(row.kind.value, row.code) for row in self.rows()}

    def converge(self):
        return converge(self, FEATURES["roce"], self.wants["roce"], ALL)


@pytest.fixture
def node(tmp_path, request):
    made = Node(tmp_path, request.param)
    outcome = made.converge()
    assert outcome.failures(check=False) == ()
    assert made.codes() == set()
    return made


def on(*names):
    return pytest.mark.parametrize("node", names, indirect=True, ids=names)


STACKS = ("n1", "n2", "n3", "n5")
"""A bond needs a kernel: n4 is a test's of the whole lab."""


@on(*STACKS)
def test_a_machine_as_declared_is_left_alone(node):
    with node.quiet():
        assert node.converge().steps == ()


@on(*STACKS)
def test_a_reload_of_the_driver_is_drift_and_a_run_mends_it(node):
    drift.DRIFTS["driver-reload"](node.hardware, "")
    assert {kind for kind, _ in node.kinds()} == {"drift"}
    assert node.converge().failures(check=False) == ()
    assert node.codes() == set()


FAULTS = [
    ("n1", "trust-pcp", 0, {"roce.trust", "roce.dscp-map"}),
    ("n2", "trust-pcp", 1, {"roce.trust", "roce.dscp-map"}),
    ("n2", "firmware-mask-off", 1, {"roce.cc-mask"}),
    ("n2", "mtu-mismatch", 0, {"roce.mtu"}),
    ("n5", "nic-dead", 8, {"device.missing"}),
    ("n5", "nic-swapped", 9, {"device.replaced"}),
]


@pytest.mark.parametrize(("node", "fault", "rail", "codes"), FAULTS, indirect=["node"])
def test_each_fault_is_named(node, fault, rail, codes):
    netdev = node.hardware.machine.ports[rail].netdev
    if fault in drift.DRIFTS:
        drift.DRIFTS[fault](node.hardware, netdev)
    elif fault == "mtu-mismatch":
        node.hardware.node.set_mtu(netdev, 1500)
    elif fault == "firmware-mask-off":
        request = {"netdev": netdev, "name": "ROCE_CC_PRIO_MASK_P{port}", "value": 0xF7}
        assert control.answer(node.hardware, "", {"token": "", "verb": "firmware", **request}) == {}
    else:
        node.hardware.set_fault(Fault(fault, netdev))
    assert node.codes() == codes


@on("n1", "n2")
def test_a_foreign_writer_is_a_failure_by_name_and_not_a_success(node):
    netdev = node.hardware.machine.ports[0].netdev
    node.hardware.set_fault(Fault("foreign-writer", netdev))
    drift.DRIFTS["cnp-changed"](node.hardware, netdev)
    (failed,) = node.converge().failures(check=False)
    assert "cnp_dscp is 4, not 48" in failed.reason
    assert node.codes() == {"roce.cnp"}


@on("n1")
def test_dcbx_in_the_firmware_is_named_blocks_and_is_taken_over_only_if_the_fabric_says_so(node):
    port = node.hardware.machine.ports[0]
    drift.DRIFTS["dcbx-firmware"](node.hardware, port.netdev)
    assert node.codes() == {"foreign.dcbx"}
    drift.DRIFTS["cnp-changed"](node.hardware, port.netdev)
    (blocked,) = node.converge().steps
    assert blocked.status.value == "blocked"
    assert {change.path for change in blocked.step.changes} == {(port.pci, "cnp_dscp"), (port.pci, "cnp_priority")}
    node.declare("dcbx")
    assert node.converge().failures(check=False) == ()
    assert node.codes() == set()
    assert "DCBX mode: OS controlled" in node.query("mlnx_qos", "-a", "-i", port.netdev).stdout


RELEASES = {
    "2022": set(),
    "ofed-5": set(),
    "no-buffers": set(),
    # It does not say who runs DCBX; it does not number its classes: that is unknown, and nothing else.
    "ofed-4.2": {("unknown", "foreign.dcbx")},
    "no-rates": {("unknown", "roce.ets")},
}


@on("n1")
@pytest.mark.parametrize("release", RELEASES)
def test_older_releases_of_mlnx_qos_are_read_as_the_newest_or_not_at_all(node, release):
    node.hardware.set_fault(Fault(RELEASE, release))
    assert node.kinds() == RELEASES[release]


def test_every_release_is_asked_for():
    assert {"current", *RELEASES} == set(RELEASE_NAMES)


NEEDED = [
    ("n1", "mlnx_qos", {"roce.trust", "roce.dscp-map", "roce.cable", "roce.pfc", "roce.ets", "foreign.dcbx"}),
    ("n2", "mstconfig", {"roce.ecn"}),
]


@pytest.mark.parametrize(("node", "tool", "codes"), NEEDED, indirect=["node"])
@pytest.mark.parametrize("fault", ["missing", "garbage"])
def test_without_its_tool_a_setting_is_unknown_and_never_off(node, tool, codes, fault):
    if fault == "missing":
        node.broken[tool] = Unknown(f"{tool} is not installed")
    else:
        node.hardware.set_fault(Fault("garbage-output", tool))
    assert node.kinds() == {("unknown", code) for code in codes}
