"""Whole runs on a node whose nvidia-smi keeps state: apply, read back, undo, reload, reboot, jobs."""

import json
from dataclasses import replace

import pytest

from gpufab_cli.module_utils import desired, planning
from gpufab_cli.module_utils.change import ABSENT, Impact, Unknown
from gpufab_cli.module_utils.converge import Order, Status, converge
from gpufab_cli.module_utils.dvfs import job, services
from gpufab_cli.module_utils.dvfs.feature import Dvfs
from gpufab_cli.module_utils.dvfs.want import GpuPolicy, JobsWant
from gpufab_cli.module_utils.host import BusyLockError, HostError
from gpufab_cli.module_utils.restore import EARLY, LATE, restore
from gpufab_cli.module_utils.schema import SchemaError
from tests.fakes import ok, start

from .dvfs_node import GPU0, GPU1, H100, POLICY, GpuHost, want

BOTH = (GPU0, GPU1)
WANT = want(gpus=BOTH)


def node():
    return GpuHost({GPU0: H100, GPU1: H100})


def run(host, wish=WANT, **order):
    return converge(host, Dvfs(), wish, Order(**order))


def audit(host, wish=WANT):
    snapshot = planning.take(host, {"dvfs": Dvfs()}, {"dvfs": wish})
    return planning.plan(Dvfs(), snapshot, wish)


def statuses(outcome):
    return {result.step.name: result.status for result in outcome.steps}


def drift(plan):
    return {change.path for step in plan.steps for change in step.changes}


@pytest.fixture
def applied():
    host = node()
    assert set(statuses(run(host)).values()) == {Status.MADE}
    return host


def test_apply_is_idempotent_and_the_audit_after_it_is_clean(applied):
    assert applied.locks == {(pci, "-lgc"): (1200, 1980) for pci in BOTH}
    assert {gpu.power_limit_w for gpu in applied.gpus.values()} == {650.0}
    assert audit(applied).clean
    before = dict(applied.files)
    assert run(applied).steps == ()
    assert applied.files == before


def test_check_mode_shows_what_apply_changes_and_changes_nothing():
    host = node()
    shown = run(host, check=True)
    assert host.writes == []
    made = run(host)
    assert [r.step.changes for r in shown.steps] == [r.step.changes for r in made.steps]


@pytest.mark.parametrize("event", ["driver reload", "reboot"])
def test_what_a_reload_or_reboot_loses_is_drift_and_comes_back(applied, event):
    applied.reload()
    if event == "reboot":
        applied.files["/proc/sys/kernel/random/boot_id"] = "boot-2\n"
        for pci in BOTH:
            applied.load(pci, 77)  # sysfs may count anew after a reboot
    lost = {(pci, name) for pci in BOTH for name in ("persistence", "power_limit_w", "graphics_mhz")}
    assert drift(audit(applied)) == lost
    assert "dvfs.changed-again" not in [finding.code for finding in audit(applied).findings]
    assert restore(applied, LATE)
    assert applied.locks == {(pci, "-lgc"): (1200, 1980) for pci in BOTH}
    assert audit(applied).clean


def test_one_gpu_of_two_that_refuses_is_named_and_all_are_as_they_were():
    host = node()
    host.refuses = {GPU1}
    outcome = run(host)
    (failed,) = [result for result in outcome.steps if result.status is Status.FAILED]
    assert failed.step.name == "dvfs gpus"
    assert GPU1 in failed.reason
    assert "Insufficient Permissions" in failed.reason
    assert failed.reason.endswith("undone")
    assert host.locks == {}
    assert {gpu.power_limit_w for gpu in host.gpus.values()} == {700.0}
    assert {gpu.persistence for gpu in host.gpus.values()} == {False}


def test_a_lock_that_was_there_is_what_an_undo_brings_back(applied):
    applied.refuses = {GPU1}
    other = want(replace(POLICY, power_limit_w=600, graphics_mhz=(210, 1500)), BOTH)
    assert Status.FAILED in statuses(run(applied, other)).values()
    assert applied.locks == {(pci, "-lgc"): (1200, 1980) for pci in BOTH}
    assert {gpu.power_limit_w for gpu in applied.gpus.values()} == {650.0}
    assert drift(audit(applied)) == {("/etc/gpufab/desired.d/dvfs.json",)}


def test_a_driver_that_ignores_and_exits_0_is_no_success():
    host = node()
    host.ignores = {GPU0}
    (result,) = [r for r in run(host).steps if r.step.name == "dvfs gpus"]
    assert result.status is Status.FAILED
    assert "not supported" in result.reason


def test_a_lost_gpu_does_not_keep_the_others_from_their_policy():
    host = node()
    host.gpus[GPU1] = None
    outcome = run(host)
    assert statuses(outcome)["dvfs gpus"] is Status.MADE
    assert [finding.code for finding in outcome.findings] == ["dvfs.gpu-lost"]
    assert host.locks == {(GPU0, "-lgc"): (1200, 1980)}


def test_a_gpu_that_falls_off_the_bus_while_it_is_set_has_not_been_set():
    host = node()
    original = host._set

    def last_words(pci, argv):
        said = original(pci, argv)
        if pci == GPU1 and argv[0] == "-lgc":
            host.gpus[GPU1] = None
        return said

    host._set = last_words
    result = run(host).steps[-1]
    assert (result.step.name, result.status) == ("dvfs gpus", Status.FAILED)
    assert f"{GPU1}/power_limit_w is UNKNOWN" in result.reason
    assert "could not be undone" in result.reason
    assert host.gpus[GPU0].power_limit_w == 700.0  # the other one is as it was


def test_systemd_that_does_not_answer_withholds_gpus_and_says_so(applied):
    applied.reload()
    applied.files["/run/systemd/system/x"] = ""
    applied.systemd = None
    (step,) = audit(applied).steps
    assert {change.current for change in step.changes} == {
        Unknown("cannot tell whether nvidia-persistenced.service is about to start: systemctl show: exit 1: no answer")
    }
    assert statuses(run(applied))["dvfs gpus"] is Status.UNKNOWN


def test_without_systemd_there_is_nobody_to_wait_for():
    host = node()
    host.systemd = None
    assert statuses(run(host))["dvfs gpus"] is Status.MADE


def test_a_job_that_resets_power_is_seen_and_told(applied):
    applied.gpus[GPU1] = replace(applied.gpus[GPU1], power_limit_w=700.0)
    start(applied, 9, "slurmd")
    plan = audit(applied)
    assert drift(plan) == {(GPU1, "power_limit_w")}
    (finding,) = plan.findings
    assert (finding.code, finding.path) == ("dvfs.changed-again", (GPU1, "power_limit_w"))
    assert "Slurm" in finding.evidence


def test_before_persistenced_has_started_nothing_is_known_and_early_restore_leaves_gpus_to_late(applied):
    applied.reload()
    applied.systemd["nvidia-persistenced"] = "LoadState=loaded\nActiveState=inactive\nUnitFileState=enabled\nJob=42"
    assert all(step.unknowns for step in audit(applied).steps if step.name == "dvfs gpus")
    writes = len(applied.writes)
    assert restore(applied, EARLY)
    assert len(applied.writes) == writes
    applied.systemd["nvidia-persistenced"] = "LoadState=loaded\nActiveState=active\nUnitFileState=enabled"
    assert restore(applied, LATE)
    assert audit(applied).clean


def test_mig_is_made_with_consent_only():
    host, wish = node(), want(GpuPolicy(mig=True), (GPU0,))
    assert Status.REFUSED in statuses(run(host, wish)).values()
    assert host.gpus[GPU0].mig is False
    run(host, wish, allow=frozenset({Impact.GPU_RESET}))
    assert audit(host, wish).clean


def test_mig_that_the_driver_lost_comes_back_without_asking_again():
    host, wish = node(), want(GpuPolicy(mig=True), (GPU0,))
    run(host, wish)
    assert not restore(host, LATE)  # nobody has ever consented
    run(host, wish, allow=frozenset({Impact.GPU_RESET}))
    host.gpus[GPU0] = replace(host.gpus[GPU0], mig=False, mig_pending=False)
    host.load(GPU0, 78)
    assert restore(host, LATE)
    assert host.gpus[GPU0].mig is True


def test_without_root_a_lock_is_unknown(applied):
    applied.unreadable["/var/lib/gpufab/record/dvfs.json"] = "Permission denied"
    (step,) = audit(applied).steps
    assert {change.path for change in step.changes} == {(pci, "graphics_mhz") for pci in BOTH}
    assert all(isinstance(change.current, Unknown) for change in step.changes)


# ---- jobs ------------------------------------------------------------------------------------------------------------


def slurm(comment="gpufab:graphics=1200-1500,power=500", job="123", gpus="0,1"):
    return {"SLURM_JOB_ID": job, "SLURM_JOB_COMMENT": comment, "SLURM_JOB_GPUS": gpus}


def limits(host):
    return {pci: gpu.power_limit_w for pci, gpu in host.gpus.items()}


def test_a_job_gets_its_clocks_and_the_policy_comes_back(applied):
    job.begin(applied, slurm(gpus="1"))
    assert limits(applied) == {GPU0: 650.0, GPU1: 500.0}
    assert applied.locks == {(GPU0, "-lgc"): (1200, 1980), (GPU1, "-lgc"): (1200, 1500)}
    assert [finding.code for finding in audit(applied).findings] == ["dvfs.job"]
    assert drift(audit(applied)) == set()
    job.end(applied, slurm(gpus="1"))
    assert limits(applied) == {GPU0: 650.0, GPU1: 650.0}
    assert audit(applied).clean


@pytest.mark.parametrize(
    ("comment", "reason"),
    [
        ("gpufab:power=700", "power=700 is more than 650"),
        ("gpufab:graphics=1200-2100", "graphics=1200-2100 is not within 1200-1980"),
        ("gpufab:graphics=210", "graphics=210 is not within 1200-1980"),
        ("gpufab:graphics=1500-1300", "graphics=1500-1300 is not within 1200-1980"),
        ("gpufab:fan=1", "'fan' cannot be asked for, graphics and power can"),
        ("gpufab:power=", "'' is not a number"),
    ],
)
def test_a_job_stays_within_the_nodes_bounds(applied, comment, reason):
    writes = len(applied.writes)
    assert job.begin(applied, slurm(comment)) == (f"job 123: refused: {reason}",)
    assert len(applied.writes) == writes


@pytest.mark.parametrize("comment", ["", "nothing of ours", "gpufab", "xgpufab:power=500"])
def test_a_job_that_asks_for_nothing_changes_nothing(applied, comment):
    writes = len(applied.writes)
    assert job.begin(applied, slurm(comment)) == ()
    assert len(applied.writes) == writes


def test_a_job_that_cannot_get_its_clocks_leaves_the_policy(applied):
    applied.refuses = {GPU0}
    words = job.begin(applied, slurm(gpus="0,1"))
    assert "failed" in words[0]
    assert limits(applied) == {GPU0: 650.0, GPU1: 650.0}
    assert audit(applied).clean


def test_a_clock_the_gpu_does_not_have_is_refused_and_the_policy_stays(applied):
    job.begin(applied, slurm("gpufab:graphics=1201-1500"))
    assert audit(applied).clean


def test_a_killed_epilog_is_made_good_by_the_sweep(applied):
    job.begin(applied, slurm())
    start(applied, 50, "slurmstepd")
    applied.files["/proc/50/cmdline"] = "slurmstepd: [123.extern]\0"
    assert job.sweep(applied) == ()
    assert limits(applied)[GPU0] == 500.0
    del applied.files["/proc/50/comm"], applied.files["/proc/50/cmdline"]
    job.sweep(applied)
    assert limits(applied)[GPU0] == 650.0
    assert audit(applied).clean


def test_an_epilog_that_could_not_have_the_node_is_made_good_by_the_sweep(applied, monkeypatch):
    def held(*_):
        raise BusyLockError("another gpufab run holds the node")

    job.begin(applied, slurm())
    with monkeypatch.context() as patch:
        patch.setattr(applied, "lock", held)
        with pytest.raises(BusyLockError):
            job.end(applied, slurm())
        with pytest.raises(BusyLockError):
            job.sweep(applied)
    assert limits(applied) == {GPU0: 500.0, GPU1: 500.0}
    assert job.sweep(applied) == ("job 123: dvfs gpus: made",)
    assert limits(applied) == {GPU0: 650.0, GPU1: 650.0}
    assert audit(applied).clean
    assert job.sweep(applied) == ()


def test_a_job_whose_gpus_refuse_the_policy_is_swept_until_they_take_it(applied):
    job.begin(applied, slurm())
    applied.refuses = {GPU0}
    assert "failed" in job.end(applied, slurm())[0]
    assert "failed" in job.sweep(applied)[0]
    assert limits(applied) == {GPU0: 500.0, GPU1: 650.0}  # the one that does not refuse has it at once
    applied.refuses = set()
    assert job.sweep(applied) == (f"job 123: dvfs gpus ({GPU0}): made",)
    assert (limits(applied)[GPU0], job.sweep(applied)) == (650.0, ())


def test_a_prolog_killed_before_it_set_anything_is_made_good_too(applied):
    job.begin(applied, slurm())
    kept = applied.files["/var/lib/gpufab/jobs/123.json"]
    job.end(applied, slurm())
    applied.files["/var/lib/gpufab/jobs/123.json"] = kept
    assert drift(audit(applied))
    job.sweep(applied)
    assert audit(applied).clean


def test_a_job_of_an_earlier_boot_counts_for_nothing(applied):
    job.begin(applied, slurm())
    applied.files["/proc/sys/kernel/random/boot_id"] = "boot-2\n"
    applied.reload()
    assert restore(applied, LATE)
    assert limits(applied) == {GPU0: 650.0, GPU1: 650.0}


def test_a_damaged_job_file_counts_for_nothing(applied):
    applied.files["/var/lib/gpufab/jobs/9.json"] = "{"
    assert audit(applied).clean


def test_outside_slurm_the_hooks_say_so():
    with pytest.raises(HostError, match="no prolog"):
        job.begin(node(), {})


def test_a_node_without_a_wish_has_no_jobs():
    host = node()
    assert job.begin(host, slurm()) == ()
    assert host.writes == []


def test_the_kept_wish_survives_json(applied):
    data = json.loads(applied.read(desired.desired_path("dvfs")))
    assert data["want"]["policies"]["default"]["graphics_mhz"] == [1200, 1980]
    assert dict(desired.load(applied, {"dvfs": type(WANT)}))["dvfs"] == WANT


def test_hooks_are_files_and_come_back():
    host = node()
    host.files["/run/systemd/system/x"] = ""
    for verb in (("daemon-reload",), ("start", "gpufab-jobs.timer")):
        host.answers["systemctl", *verb] = ok("")
    wish = replace(want(GpuPolicy()), jobs=JobsWant("/p", "/e"))
    assert statuses(run(host, wish))["dvfs jobs"] is Status.MADE
    assert b"job begin" in host.files["/p/50-gpufab-prolog.sh"]
    assert b"job end" in host.files["/e/50-gpufab-epilog.sh"]
    assert audit(host, wish).clean
    del host.files["/e/50-gpufab-epilog.sh"]
    (step,) = audit(host, wish).steps
    assert [(c.path, c.current) for c in step.changes] == [(("/e/50-gpufab-epilog.sh",), ABSENT)]


def test_a_damaged_wish_fails_a_job_s_prolog_by_name(applied):
    applied.files[desired.desired_path("dvfs")] = '{"format": 1, "want": 5}'
    with pytest.raises(SchemaError, match=r"dvfs\.json: 5 is not a mapping"):
        job.begin(applied, slurm())


def test_a_user_s_process_keeps_no_job_alive_and_is_no_slurmd(applied):
    job.begin(applied, slurm())
    start(applied, 50, "slurmstepd", uid=1000)
    start(applied, 51, "slurmd", uid=1000)
    applied.files["/proc/50/cmdline"] = "slurmstepd: [123.extern]\0"
    assert services.writers(applied) == ()
    assert job._running(applied) == ()
    start(applied, 50, "slurmstepd")
    start(applied, 51, "slurmd")
    assert job._running(applied) == ("123",)
    assert len(services.writers(applied)) == 1
