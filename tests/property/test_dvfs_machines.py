"""Emulated machines, whole: what the audit finds, check mode shows and apply makes are one; nothing is left after it,
nor after a reboot and the restore; whatever was changed behind gpufab's back before."""

from copy import deepcopy
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gpufab_cli.lab import machine
from gpufab_cli.lab.hardware import drift_power
from gpufab_cli.lab.hardware.state import Fault
from gpufab_cli.module_utils import planning
from gpufab_cli.module_utils.change import Impact
from gpufab_cli.module_utils.converge import Order, Status, converge
from gpufab_cli.module_utils.dvfs import cpu
from gpufab_cli.module_utils.dvfs.feature import Dvfs
from gpufab_cli.module_utils.dvfs.want import CpuWant, DvfsWant, GpuPolicy, GpuWant
from gpufab_cli.module_utils.restore import LATE, restore
from tests.machine import LabHost

POLICIES = {
    "hgx-h100": GpuPolicy(persistence=True, power_limit_w=650, graphics_mhz=(1200, 1980), mig=False),
    "hgx-a100-40": GpuPolicy(persistence=True, power_limit_w=300, graphics_mhz=(210, 1200), memory_mhz=(1215, 1215)),
    "hgx-a100-80": GpuPolicy(persistence=True, memory_mhz=(1593, 1593), graphics_mhz=()),
    "l40s-inbox": GpuPolicy(persistence=True, power_limit_w=300),
    "t4-guest": GpuPolicy(persistence=True, power_limit_w=60, graphics_mhz=(300, 1005)),
}
CPUS = {
    "hgx-h100": CpuWant(governor="performance", max_cstate_us=2, boost=True),
    "hgx-a100-40": CpuWant(governor="performance", max_cstate_us=1, min_mhz=1500, max_mhz=2250, boost=False),
    "hgx-a100-80": CpuWant(governor="powersave", epp="power", max_mhz=2000),
    "l40s-inbox": CpuWant(governor="powersave", epp="128"),
    "t4-guest": None,
}
FULL = {"allow": frozenset(Impact), "busy_ok": True}


def node(name, folder):
    return LabHost(folder, name, rails=0, gpus=8, cpus=2)


def wish(name, **changes):
    gpus = tuple(GpuWant(place.pci, "default") for place in machine.load(name).gpus)
    return DvfsWant(**{"policies": {"default": POLICIES[name]}, "gpus": gpus, "cpu": CPUS[name], **changes})


def audit(host, want):
    return planning.plan(Dvfs(), planning.take(host, {"dvfs": Dvfs()}, {"dvfs": want}), want)


def changes(steps):
    return {change.path: (change.current, change.desired) for step in steps for change in step.changes}


def run(host, want, **order):
    return converge(host, Dvfs(), want, Order(**order))


def check_invariant(host, want):
    found = changes(audit(host, want).steps)
    writes = len(host.writes)
    shown = run(host, want, check=True, **FULL)
    assert len(host.writes) == writes
    made = run(host, want, **FULL)
    assert {result.status for result in made.steps} <= {Status.MADE}, made
    assert found == changes(r.step for r in shown.steps) == changes(r.step for r in made.steps)
    assert run(host, want, **FULL).steps == ()
    assert audit(host, want).steps == ()


@pytest.mark.parametrize("name", sorted(POLICIES))
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    drifts=st.lists(st.tuples(st.sampled_from(sorted(drift_power.DRIFTS)), st.integers(0, 1)), max_size=4),
    data=st.data(),
)
def test_the_invariant_holds_after_any_drift_and_after_a_reboot(name, drifts, data):
    folder = TemporaryDirectory()
    host, want = node(name, Path(folder.name)), wish(name)
    if data.draw(st.booleans()):
        check_invariant(host, want)
    for drift, gpu in drifts:
        if drift != "governor-overwritten" or want.cpu is not None:
            drift_power.DRIFTS[drift](host.hardware, gpu)
    check_invariant(host, want)
    host.boot()
    assert restore(host, LATE)
    assert audit(host, want).steps == ()


@pytest.mark.parametrize(
    ("name", "changed", "codes"),
    [
        ("hgx-a100-80", {"policies": {"default": GpuPolicy(persistence=True, memory_mhz=(1215, 1215))}},
         {"dvfs.clock-range"}),
        ("t4-guest", {"policies": {"default": GpuPolicy(persistence=True, power_limit_w=150)}}, {"dvfs.power-range"}),
        ("t4-guest", {"cpu": CpuWant(governor="performance")}, {"dvfs.cpu-not-controllable"}),
        ("hgx-h100", {"cpu": CpuWant(governor="ondemand")}, {"dvfs.cpu-refused"}),
        ("hgx-a100-40", {"cpu": CpuWant(epp="power")}, {"dvfs.cpu-refused"}),
    ],
)  # fmt: skip
def test_what_a_machine_cannot_do_is_told_and_the_rest_is_made(tmp_path, name, changed, codes):
    host, want = node(name, tmp_path), wish(name, **changed)
    check_invariant(host, want)
    assert {finding.code for finding in audit(host, want).findings} == codes


def test_a_memory_lock_that_is_warned_about_and_exits_0_is_a_failure_and_undone(tmp_path):
    host = node("t4-guest", tmp_path)
    want = wish("t4-guest", policies={"default": GpuPolicy(persistence=True, memory_mhz=(5001, 5001))})
    (failed,) = [r for r in run(host, want).steps if r.status is Status.FAILED]
    assert "not supported" in failed.reason
    assert not any(gpu.persistence for gpu in host.hardware.state.gpus)


def test_a_lost_gpu_and_a_hot_one_are_findings_and_the_others_follow_the_policy(tmp_path):
    host, want = node("hgx-h100", tmp_path), wish("hgx-h100")
    host.hardware.set_fault(Fault("gpu-lost", "2"))
    host.hardware.set_fault(Fault("thermal-throttle", "5"))
    check_invariant(host, want)
    pcis = [gpu.pci for gpu in want.gpus]
    assert {(f.code, f.path[0]) for f in audit(host, want).findings} == {
        ("dvfs.gpu-lost", pcis[2]), ("dvfs.thermal-slowdown", pcis[5])
    }  # fmt: skip
    assert [gpu.power_w for gpu in host.hardware.state.gpus] == [650.0, 650.0, None, *[650.0] * 5]


@pytest.mark.parametrize("number", range(1, 30))
def test_a_write_that_fails_leaves_all_gpus_and_cpus_as_they_were(tmp_path, number):
    host, want = node("hgx-a100-40", tmp_path), wish("hgx-a100-40")
    before = deepcopy(host.hardware.state)
    seen = cpu.read(host, want.cpu)
    host.hardware.set_fault(Fault("fail-at-write", count=number))
    outcome = run(host, want)
    failed = {result.step.name for result in outcome.steps if result.status is Status.FAILED}
    if "dvfs gpus" in failed:
        assert host.hardware.state.gpus == before.gpus
    if "dvfs cpu" in failed:
        assert cpu.read(host, want.cpu) == seen
    host.hardware.clear_fault("fail-at-write")
    check_invariant(host, want)


def test_a_tool_that_lies_is_found_out_where_values_can_be_read_back(tmp_path):
    host, want = node("hgx-h100", tmp_path), wish("hgx-h100")
    host.hardware.set_fault(Fault("tool-lies", "nvidia-smi"))
    assert "dvfs gpus" in {r.step.name for r in run(host, want).steps if r.status is Status.FAILED}


def test_ampere_mig_and_ecc_wait_for_a_reset_and_then_are_done(tmp_path):
    host = node("hgx-a100-80", tmp_path)
    want = wish("hgx-a100-80", policies={"default": GpuPolicy(mig=True, ecc=False)}, cpu=None)
    run(host, want, **FULL)
    assert {(item.path[1], item.waits_for) for item in audit(host, want).pending} == {
        ("ecc", Impact.GPU_RESET), ("mig", Impact.GPU_RESET)
    }  # fmt: skip
    host.boot()
    assert audit(host, want).clean


def test_hopper_mig_is_lost_at_a_reboot_and_restored(tmp_path):
    host = node("hgx-h100", tmp_path)
    want = wish("hgx-h100", policies={"default": GpuPolicy(mig=True)}, cpu=None)
    run(host, want, **FULL)
    host.boot()
    assert {path[1] for path in changes(audit(host, want).steps)} == {"mig"}
    assert restore(host, LATE)
    assert all(gpu.mig for gpu in host.hardware.state.gpus)
