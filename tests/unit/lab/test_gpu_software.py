"""The software of the GPUs: what the machine shows of it, and that gpu_stack finds each fault by its name."""

import pytest

from gpufab_cli.lab import machine as lab_machine
from gpufab_cli.lab.hardware import gpu_software
from gpufab_cli.lab.hardware.state import Fault
from gpufab_cli.lab.hardware.tools.answer import Request
from gpufab_cli.lab.hardware.tools.dispatch import answer
from gpufab_cli.module_utils import planning
from gpufab_cli.module_utils.change import Impact
from gpufab_cli.module_utils.features import FEATURES
from gpufab_cli.module_utils.gpu_stack.want import GpuStackWant
from tests.machine import LabHost
from tests.unit.core.test_gpu_stack import SERVICES, services

NOW = "570.86.15"


@pytest.fixture
def host(tmp_path):
    return machine(tmp_path, "hgx-h100")


def machine(folder, kind):
    made = LabHost(folder, kind)
    made.files["/proc/sys/kernel/osrelease"] = "6.8.0-1010-nvidia"
    made.answers[SERVICES] = services()
    return made


def tool(host, name, *argv):
    return answer(host.hardware, Request(name, argv, 0, 1))


def plan(host, way="any"):
    want = GpuStackWant(gpudirect=way)
    snapshot = planning.take(host, {"gpu_stack": FEATURES["gpu_stack"]}, {"gpu_stack": want})
    return planning.plan(FEATURES["gpu_stack"], snapshot, want)


def codes(host, way="any"):
    return {finding.code for finding in plan(host, way).findings}


@pytest.mark.parametrize("kind", lab_machine.names())
def test_every_machine_is_in_order(tmp_path, kind):
    assert plan(machine(tmp_path, kind)).clean


def test_an_inbox_stack_has_no_peer_memory_and_its_gpus_are_reached_by_dmabuf(tmp_path):
    host = machine(tmp_path, "l40s-inbox")
    assert codes(host, "peermem") == {"gpu.peermem-no-api"}
    assert codes(host, "dmabuf") == set()


def test_fabric_manager_of_another_version_ends_at_once(host):
    assert tool(host, "nv-fabricmanager", "-c", "x").program
    host.hardware.set_fault(Fault("fabricmanager-mismatch"))
    ended = tool(host, "nv-fabricmanager", "-c", "x")
    assert (ended.rc, ended.program) == (1, "")
    assert "don't match with driver version 570.86.15" in ended.stderr
    host.answers[SERVICES] = services("failed")
    assert codes(host) == {"gpu.fabric-manager", "gpu.fabric-manager-version", "gpu.fabric-state"}


def test_only_machines_with_nvswitches_have_fabric_manager(tmp_path, host):
    assert host.hardware.machine.has_tool("nv-fabricmanager")
    other = machine(tmp_path, "l40s-ofed").hardware.machine
    assert (other.has_fabric, other.has_tool("nv-fabricmanager")) == (False, False)


@pytest.mark.parametrize(
    ("fault", "code"),
    [("peermem-unloaded", "gpu.peermem-not-loaded"), ("peermem-refused", "gpu.peermem-rebuild")],
)
def test_peermem_that_is_gone_or_refused(host, fault, code):
    host.hardware.set_fault(Fault(fault))
    assert codes(host, "peermem") == {code}
    assert codes(host) == ({"gpu.peermem-unneeded"} if fault == "peermem-refused" else set())
    host.hardware.clear_fault(fault)
    assert codes(host, "peermem") == set()


def test_an_upgraded_driver_waits_for_a_reboot_and_nvidia_smi_fails_until_then(host):
    gpu_software.upgrade(host.hardware)
    found = plan(host)
    (pending,) = found.pending
    assert found.findings == ()
    assert (pending.running, pending.next_boot, pending.waits_for) == (NOW, gpu_software.NEXT, Impact.REBOOT)
    said = tool(host, "nvidia-smi", "-q", "-x")
    assert said.rc == 18
    assert said.stdout.endswith("Driver/library version mismatch\nNVML library version: 570.124\n")
    host.boot()
    assert plan(host).clean
    assert tool(host, "modinfo", "-F", "version", "nvidia").stdout == f"{gpu_software.NEXT}\n"


def test_modinfo_knows_the_driver_and_no_other_module(host):
    assert tool(host, "modinfo", "-F", "version", "nvidia").stdout == f"{NOW}\n"
    other = tool(host, "modinfo", "-F", "version", "loop")
    assert (other.rc, other.stderr) == (1, "modinfo: ERROR: Module loop not found.\n")


def test_the_log_of_nvidia_smi_tells_the_fabric(tmp_path, host):
    assert "<state>Completed</state>" in tool(host, "nvidia-smi", "-q", "-x").stdout
    assert "<state>N/A</state>" in tool(machine(tmp_path, "l40s-ofed"), "nvidia-smi", "-q", "-x").stdout
