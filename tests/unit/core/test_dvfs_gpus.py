"""What is planned on GPUs, row by row."""

from dataclasses import replace

import pytest

from gpufab_cli.module_utils.change import ABSENT, Impact, Unknown
from gpufab_cli.module_utils.dvfs.plan import plan
from gpufab_cli.module_utils.dvfs.seen import JobSeen
from gpufab_cli.module_utils.dvfs.want import DvfsWant, GpuPolicy, GpuWant

from .dvfs_node import GOOD, GPU0, GPU1, H100, POLICY, locked, service, snapshot, want

RECORDS = (locked(),)


def planned(snap, wish=None):
    steps = plan(snap, wish or want()).steps
    return {change.path: (change.current, change.desired) for step in steps for change in step.changes}


def findings(snap, wish=None):
    return {(finding.code, finding.path): finding.evidence for finding in plan(snap, wish or want()).findings}


def codes(snap, wish=None):
    return [finding.code for finding in plan(snap, wish or want()).findings]


def test_a_gpu_as_wanted_plans_nothing():
    assert plan(snapshot(records=RECORDS), want()).clean


def test_the_factory_state_is_one_step_for_all_gpus():
    (step,) = plan(snapshot({GPU0: H100, GPU1: H100}), want(gpus=(GPU0, GPU1))).steps
    assert step.name == "dvfs gpus"
    assert step.impact == frozenset()
    assert [change.path for change in step.changes] == [
        (pci, name) for pci in (GPU0, GPU1) for name in ("persistence", "power_limit_w", "graphics_mhz")
    ]
    assert {change.load for change in step.changes} == {"77"}


def test_nothing_declared_is_nothing_managed():
    assert plan(snapshot({GPU0: H100}), want(GpuPolicy())).clean
    assert plan(snapshot({GPU0: H100}), DvfsWant()).clean


@pytest.mark.parametrize(
    ("found", "records", "current"),
    [
        pytest.param({}, RECORDS, None, id="set in this boot and this load of the driver"),
        pytest.param({}, (), ABSENT, id="never set"),
        pytest.param({}, ABSENT, ABSENT, id="no record at all"),
        pytest.param({}, (locked(boot="boot-0"),), ABSENT, id="set before the last reboot"),
        pytest.param({"load": 78}, RECORDS, ABSENT, id="the driver was reloaded since"),
        pytest.param({}, (locked(value=(210, 1500)),), (210, 1500), id="set to something else"),
        pytest.param({"graphics_now_mhz": 1995}, RECORDS, ABSENT, id="runs above what was locked"),
        pytest.param({"graphics_now_mhz": 345}, RECORDS, None, id="idle below what was locked"),
        pytest.param({"throttle": 0x20, "graphics_now_mhz": 600}, RECORDS, None, id="hot below what was locked"),
        pytest.param({"load": Unknown("gone")}, RECORDS, Unknown("gone"), id="which load is not known"),
        pytest.param({}, Unknown("no right"), Unknown("no right"), id="the record cannot be read"),
        pytest.param({"graphics_clocks_mhz": Unknown("hangs")}, (), Unknown("hangs"), id="supported clocks unknown"),
    ],
)
def test_a_lock_is_what_the_record_says_as_long_as_it_can_hold(found, records, current):
    changes = planned(snapshot({GPU0: replace(GOOD, **found)}, records))
    assert changes.get((GPU0, "graphics_mhz"), (None, None))[0] == current


def test_a_lock_does_not_outlive_persistence_mode():
    changes = planned(snapshot({GPU0: replace(GOOD, persistence=False)}, RECORDS))
    assert changes == {(GPU0, "persistence"): (False, True), (GPU0, "graphics_mhz"): (ABSENT, (1200, 1980))}


def test_a_lock_that_is_not_wanted_is_taken_off_even_where_it_may_be_lost():
    free, off = replace(POLICY, graphics_mhz=()), replace(GOOD, persistence=False)
    assert planned(snapshot({GPU0: off}, RECORDS), want(free))[GPU0, "graphics_mhz"] == ((1200, 1980), ())


def test_unlocked_is_a_wish_and_not_managed_is_none():
    free = replace(POLICY, graphics_mhz=())
    assert planned(snapshot(records=RECORDS), want(free)) == {(GPU0, "graphics_mhz"): ((1200, 1980), ())}
    assert planned(snapshot(records=()), want(free)) == {}
    assert planned(snapshot(records=RECORDS), want(replace(POLICY, graphics_mhz=None))) == {}


@pytest.mark.parametrize(
    ("found", "policy", "code", "evidence"),
    [
        pytest.param(
            {"power_min_w": 60.0, "power_max_w": 70.0, "power_limit_w": 70.0, "power_default_w": 70.0},
            GpuPolicy(persistence=True, power_limit_w=150),
            "dvfs.power-range",
            "150 W is not within 60..70 W",
            id="T4 asked for 150 W",
        ),
        pytest.param(
            {"power_limit_w": ABSENT, "power_min_w": ABSENT, "power_max_w": ABSENT, "power_default_w": ABSENT},
            GpuPolicy(persistence=True, power_limit_w=150),
            "dvfs.unsupported",
            "the GPU's power cannot be limited",
            id="power readings are N/A",
        ),
        pytest.param(
            {"memory_clocks_mhz": (1593,)},
            GpuPolicy(persistence=True, memory_mhz=(1215, 1215)),
            "dvfs.clock-range",
            "1215 MHz is not supported, these are: 1593",
            id="A100 80GB given the memory clock of the 40GB card",
        ),
        pytest.param(
            {},
            GpuPolicy(persistence=True, graphics_mhz=(1980, 3201)),
            "dvfs.clock-range",
            "3201 MHz is not supported, these are: 210..1980 in steps of 15; it looks like a memory clock",
            id="memory clock given as the graphics clock",
        ),
        pytest.param(
            {},
            GpuPolicy(persistence=True, graphics_mhz=(1201, 1980)),
            "dvfs.clock-range",
            "1201 MHz is not supported, these are: 210..1980 in steps of 15",
            id="between two supported clocks",
        ),
        pytest.param(
            {"graphics_clocks_mhz": ABSENT},
            GpuPolicy(persistence=True, graphics_mhz=(1200, 1980)),
            "dvfs.unsupported",
            "the GPU's clocks cannot be locked",
            id="clocks cannot be locked",
        ),
        pytest.param(
            {"persistence": False},
            GpuPolicy(graphics_mhz=(1200, 1980)),
            "dvfs.needs-persistence",
            "persistence mode is not on: the driver would forget this with its last client",
            id="lock without persistence",
        ),
        pytest.param(
            {"ecc": ABSENT, "ecc_pending": ABSENT},
            GpuPolicy(ecc=True),
            "dvfs.unsupported",
            "the GPU has no ECC",
            id="ECC",
        ),
    ],
)
def test_what_a_gpu_cannot_do_is_refused_with_what_it_can(found, policy, code, evidence):
    snap = snapshot({GPU0: replace(GOOD, **found)})
    assert planned(snap, want(policy)) == {}
    assert [text for (found_code, _), text in findings(snap, want(policy)).items() if found_code == code] == [evidence]


def test_one_gpu_that_refuses_does_not_keep_the_others_from_the_policy():
    small = replace(H100, power_min_w=60.0, power_max_w=70.0)
    wish = want(GpuPolicy(persistence=True, power_limit_w=650), (GPU0, GPU1))
    snap = snapshot({GPU0: small, GPU1: H100})
    assert (GPU1, "power_limit_w") in planned(snap, wish)
    assert (GPU0, "power_limit_w") not in planned(snap, wish)
    assert ("dvfs.power-range", (GPU0, "power_limit_w")) in findings(snap, wish)


def test_half_a_watt_is_no_drift():
    assert planned(snapshot({GPU0: replace(GOOD, power_limit_w=650.4)}, RECORDS)) == {}


def test_a_lost_gpu_is_named_and_the_others_are_planned():
    snap = snapshot({GPU1: H100}, lost={GPU0: "GPU is lost"})
    wish = want(gpus=(GPU0, GPU1))
    assert findings(snap, wish) == {("dvfs.gpu-lost", (GPU0,)): "GPU is lost"}
    assert {path[0] for path in planned(snap, wish)} == {GPU1}


def test_another_model_is_left_alone():
    wish = want(device="0x20b2")
    assert planned(snapshot({GPU0: H100}), wish) == {}
    assert codes(snapshot({GPU0: H100}), wish) == ["dvfs.gpu-model"]


def test_without_the_driver_everything_is_unknown_and_nothing_is_planned_blind():
    (step,) = plan(snapshot(Unknown("the nvidia driver is not loaded")), want()).steps
    assert len(step.unknowns) == len(step.changes) == 3


def test_ecc_waits_for_a_gpu_reset():
    off = want(GpuPolicy(ecc=False))
    (step,) = plan(snapshot(), off).steps
    assert (step.name, step.changes[0].where.value) == ("dvfs ecc", "next-boot")
    done = plan(snapshot({GPU0: replace(GOOD, ecc_pending=False)}), off)
    assert done.steps == ()
    assert [(item.path, item.waits_for) for item in done.pending] == [((GPU0, "ecc"), Impact.GPU_RESET)]


def test_mig_needs_consent_gpu_by_gpu():
    steps = plan(snapshot({GPU0: GOOD, GPU1: GOOD}), want(GpuPolicy(mig=True), (GPU0, GPU1))).steps
    assert [(step.device, step.impact) for step in steps] == [(pci, {Impact.GPU_RESET}) for pci in (GPU0, GPU1)]


@pytest.mark.parametrize(
    ("bits", "found"),
    [
        (0x0, []),
        (0x1, []),  # idle
        (0x2, []),  # follows the clocks it was told
        (0x4, ["dvfs.power-capped"]),
        (0x20, ["dvfs.thermal-slowdown"]),
        (0x48, ["dvfs.thermal-slowdown"]),  # hardware slowdown, told as what it is
        (0x88, ["dvfs.power-brake"]),
        (0x8, ["dvfs.hw-slowdown"]),
    ],
)
def test_throttling_is_a_finding_and_never_drift(bits, found):
    snap = snapshot({GPU0: replace(GOOD, throttle=bits, graphics_now_mhz=300)}, RECORDS)
    assert (codes(snap), planned(snap)) == (found, {})


def test_a_value_that_changed_again_names_who_may_have_done_it():
    records = (*RECORDS, locked(value=650, name="power_limit_w"))
    snap = snapshot({GPU0: replace(GOOD, power_limit_w=700.0)}, records, writers=("Slurm (process 9)",))
    assert planned(snap) == {(GPU0, "power_limit_w"): (700.0, 650)}
    assert "Slurm (process 9)" in findings(snap)["dvfs.changed-again", (GPU0, "power_limit_w")]


def test_a_value_lost_with_the_driver_was_not_changed_by_anybody():
    records = (*RECORDS, locked(value=650, name="power_limit_w"))
    snap = snapshot({GPU0: replace(GOOD, power_limit_w=700.0, load=78)}, records)
    assert "dvfs.changed-again" not in codes(snap)


def test_a_limit_that_is_not_the_default_and_not_declared_is_told():
    snap = snapshot({GPU0: replace(GOOD, power_limit_w=400.0, power_default_w=310.0)})
    assert codes(snap, want(GpuPolicy(persistence=True))) == ["dvfs.power-not-default"]


def test_an_override_tells_its_reason():
    wish = DvfsWant(
        policies={"default": POLICY, "gpu1": replace(POLICY, power_limit_w=600, reason="runs hot")},
        gpus=(GpuWant(GPU0, "default"), GpuWant(GPU1, "gpu1")),
    )
    snap = snapshot({GPU0: GOOD, GPU1: replace(GOOD, power_limit_w=600.0)}, (locked(), locked(GPU1)))
    assert findings(snap, wish) == {("dvfs.override", (GPU1,)): "runs hot"}
    assert planned(snap, wish) == {}


def test_persistenced_is_started_where_it_is_installed():
    snap = snapshot(records=RECORDS, services={"nvidia-persistenced.service": service("inactive")})
    assert [step.name for step in plan(snap, want()).steps] == ["dvfs persistenced"]
    snap = snapshot(records=RECORDS, services={"nvidia-persistenced.service": service("inactive", loaded=False)})
    assert plan(snap, want()).steps == ()


def test_a_job_has_its_own_clocks_until_it_ends():
    job = JobSeen("123", (GPU0,), power_limit_w=500, graphics_mhz=(1200, 1500))
    snap = snapshot(records=RECORDS, jobs=(job,))
    assert planned(snap) == {
        (GPU0, "power_limit_w"): (650.0, 500),
        (GPU0, "graphics_mhz"): ((1200, 1980), (1200, 1500)),
    }
    held = snapshot({GPU0: replace(GOOD, power_limit_w=500.0)}, (locked(value=(1200, 1500)),), jobs=(job,))
    assert planned(held) == {}
    assert findings(held) == {("dvfs.job", ("job 123",)): "has 1200-1500 MHz 500 W on 1 GPUs until it ends"}
