"""CPUs: what is read of sysfs, what is planned, and in which order it is written."""

from dataclasses import replace

import pytest

from gpufab_cli.module_utils.change import ABSENT, Change, Step, Unknown
from gpufab_cli.module_utils.dvfs import cpu
from gpufab_cli.module_utils.dvfs.apply import cpu_step
from gpufab_cli.module_utils.dvfs.plan import plan
from gpufab_cli.module_utils.dvfs.seen import CpuSeen, cpu_list, cpu_numbers, everywhere, spread
from gpufab_cli.module_utils.dvfs.want import CpuWant
from gpufab_cli.module_utils.record import Entry
from tests.fakes import FakeHost

from .dvfs_node import BOOT, INTEL, cpu_want, service, snapshot

ACPI = replace(
    INTEL,
    driver="acpi-cpufreq",
    mode=ABSENT,
    governor=(("ondemand", "0-3"),),
    governors=("conservative", "ondemand", "userspace", "powersave", "performance", "schedutil"),
    epp=ABSENT,
    epps=(),
)
AMD = replace(INTEL, driver="amd-pstate-epp", governor=(("powersave", "0-3"),))
PERFORMANCE = (("performance", "0-3"),)


def planned(found, **wish):
    steps = plan(snapshot({}, cpu=found), cpu_want(**wish)).steps
    return {change.path[1]: change.desired for step in steps for change in step.changes}


def refused(found, **wish):
    findings = plan(snapshot({}, cpu=found), cpu_want(**wish)).findings
    return {finding.code: finding.evidence for finding in findings}


@pytest.mark.parametrize(
    ("found", "wish", "changes"),
    [
        (INTEL, {"governor": "performance"}, {"governor": PERFORMANCE}),
        (INTEL, {"governor": "powersave"}, {}),
        (INTEL, {"epp": "power"}, {"epp": (("power", "0-3"),)}),
        (INTEL, {"epp": "128"}, {"epp": (("128", "0-3"),)}),
        (INTEL, {"min_mhz": 1200}, {"min_khz": (("1200000", "0-3"),)}),
        (INTEL, {"max_mhz": 3000}, {"max_khz": (("3000000", "0-3"),)}),
        (INTEL, {"boost": False}, {"boost": False}),
        (INTEL, {"boost": True}, {}),
        (INTEL, {"max_cstate_us": 2}, {"latency_us": (("2", "0-3"),)}),
        (INTEL, {"max_cstate_us": 0}, {"latency_us": (("0", "0-3"),)}),
        (replace(INTEL, governor=(("performance", "0-1,3"), ("powersave", "2"))), {"governor": "performance"},
         {"governor": PERFORMANCE}),
        (ACPI, {"governor": "schedutil"}, {"governor": (("schedutil", "0-3"),)}),
        (INTEL, {}, {}),
    ],
)  # fmt: skip
def test_what_is_planned(found, wish, changes):
    assert planned(found, **wish) == changes


@pytest.mark.parametrize(
    ("found", "wish", "code", "evidence"),
    [
        pytest.param(
            INTEL,
            {"governor": "ondemand"},
            "dvfs.cpu-refused",
            "ondemand is not offered by intel_pstate, these are: performance, powersave",
            id="active mode has two governors",
        ),
        pytest.param(
            CpuSeen(),
            {"governor": "performance"},
            "dvfs.cpu-not-controllable",
            "there is no cpufreq driver: the firmware or the hypervisor controls frequencies",
            id="no cpufreq directory",
        ),
        pytest.param(
            INTEL,
            {"governor": "performance", "epp": "balance_power"},
            "dvfs.cpu-refused",
            "under the governor performance intel_pstate refuses any EPP but performance (EBUSY): set powersave",
            id="EPP under the governor performance",
        ),
        pytest.param(
            replace(AMD, governor=PERFORMANCE),
            {"epp": "power"},
            "dvfs.cpu-refused",
            "under the governor performance amd-pstate-epp refuses any EPP but performance (EBUSY): set powersave",
            id="EPP under the governor that is found",
        ),
        pytest.param(
            ACPI,
            {"epp": "power"},
            "dvfs.cpu-refused",
            "the driver acpi-cpufreq offers no control of epp",
            id="acpi-cpufreq has no EPP",
        ),
        pytest.param(
            INTEL,
            {"epp": "turbo"},
            "dvfs.cpu-refused",
            "turbo is not offered, these are: default, performance, balance_performance, balance_power, power",
            id="no such EPP",
        ),
        pytest.param(
            INTEL,
            {"max_mhz": 4200},
            "dvfs.cpu-refused",
            "4200 MHz is not within 800..3800 MHz",
            id="more than the CPUs have",
        ),
        pytest.param(
            replace(INTEL, latency_us=ABSENT),
            {"max_cstate_us": 2},
            "dvfs.cpu-refused",
            "the kernel offers no control of idle_states",
            id="no cpuidle",
        ),
        pytest.param(
            INTEL,
            {"tuned_profile": "hpc"},
            "dvfs.tuned-inactive",
            "tuned.service is not installed",
            id="tuned is to set it and is not there",
        ),
    ],
)
def test_what_these_cpus_cannot_do_is_refused_with_what_they_can(found, wish, code, evidence):
    (finding,) = plan(snapshot({}, cpu=found), cpu_want(**wish)).findings
    assert (finding.code, finding.evidence) == (code, evidence)
    assert finding.path[-1] not in planned(found, **wish)


def test_one_wish_refused_keeps_no_other_from_being_set():
    assert planned(INTEL, governor="ondemand", boost=False) == {"boost": False}


def test_the_range_that_boost_opens_is_not_refused_before():
    base = replace(INTEL, boost=False, range_khz=(800000, 2000000))
    assert "dvfs.cpu-refused" not in refused(base, boost=True, max_mhz=3800)


def test_one_cpu_that_cannot_be_read_withholds_the_step():
    (step,) = plan(snapshot({}, cpu=replace(INTEL, governor=Unknown("EIO"))), cpu_want(governor="performance")).steps
    assert step.unknowns


@pytest.mark.parametrize("unit", ["tuned.service", "power-profiles-daemon.service"])
def test_a_service_that_owns_the_cpus_is_not_fought_over(unit):
    snap = snapshot({}, cpu=INTEL, services={unit: service()})
    blocked = plan(snap, cpu_want(governor="performance"))
    assert unit in blocked.steps[0].blocked
    assert [finding.code for finding in blocked.findings] == ["dvfs.cpu-owner"]
    (step,) = plan(snap, cpu_want(governor="performance", takeover=True)).steps
    assert step.blocked == ""


SILENT = Unknown("systemctl did not answer within 10 s")


@pytest.mark.parametrize(
    ("wish", "code"),
    [({"governor": "performance"}, "dvfs.cpu-owner"), ({"tuned_profile": "balanced"}, "dvfs.tuned-inactive")],
)
def test_systemd_that_does_not_answer_withholds_the_step_as_unknown(wish, code):
    result = plan(snapshot({}, cpu=replace(INTEL, tuned_profile="powersave"), services=SILENT), cpu_want(**wish))
    assert [SILENT.reason in change.current.reason for change in result.steps[0].changes] == [True]
    assert [(f.code, f.unknown, "not installed" in f.evidence) for f in result.findings] == [(code, True, False)]


def test_who_takes_over_need_not_know_who_else_runs():
    result = plan(snapshot({}, cpu=INTEL, services=SILENT), cpu_want(governor="performance", takeover=True))
    assert (result.steps[0].unknowns, result.findings) == ((), ())


def test_cpupower_is_named_and_no_owner():
    result = plan(
        snapshot({}, cpu=INTEL, services={"cpupower.service": service("inactive")}), cpu_want(governor="performance")
    )
    assert (result.steps[0].blocked, result.findings[0].code) == ("", "dvfs.cpu-owner")


def test_tuned_sets_it_where_the_site_wants_that():
    snap = snapshot({}, cpu=replace(INTEL, tuned_profile="balanced"), services={"tuned.service": service()})
    result = plan(snap, cpu_want(tuned_profile="throughput-performance"))
    assert [(c.path, c.current, c.desired) for c in result.steps[0].changes] == [
        (("cpu", "tuned_profile"), "balanced", "throughput-performance")
    ]
    assert (result.steps[0].blocked, result.findings) == ("", ())


def test_a_governor_that_changed_again_is_told():
    records = (Entry(("cpu", "governor"), PERFORMANCE, BOOT),)
    snap = snapshot({}, records, cpu=INTEL, writers=("tuned (process 4)",))
    result = plan(snap, cpu_want(governor="performance"))
    assert [finding.code for finding in result.findings] == ["dvfs.changed-again"]
    after_boot = snapshot({}, records, boot="boot-2", cpu=INTEL)
    assert plan(after_boot, cpu_want(governor="performance")).findings == ()


def test_states_are_named_where_the_kernel_takes_no_limit():
    found = replace(
        INTEL,
        latency_us=ABSENT,
        idle_states=(("POLL C1 C6", "0-3"),),
        state_latency_us=(("POLL", 0), ("C1", 1), ("C6", 190)),
    )
    assert planned(found, max_cstate_us=2) == {"idle_states": (("POLL C1", "0-3"),)}


ALL = CpuWant("performance", "power", 800, 3800, boost=True, max_cstate_us=2)


# ---- sysfs -----------------------------------------------------------------------------------------------------------


def sysfs(policies=(0, 1), **values):
    files = {}
    defaults = {
        "scaling_driver": "intel_pstate",
        "scaling_governor": "powersave",
        "scaling_available_governors": "performance powersave",
        "energy_performance_preference": "balance_performance",
        "energy_performance_available_preferences": "default performance balance_performance balance_power power ",
        "scaling_min_freq": "800000",
        "scaling_max_freq": "3800000",
        "cpuinfo_min_freq": "800000",
        "cpuinfo_max_freq": "3800000",
    }
    for number in policies:
        for name, value in {**defaults, **values}.items():
            files[f"{cpu.CPUFREQ}/policy{number}/{name}"] = f"{value}\n"
        files[f"{cpu.CPU}/cpu{number}/power/pm_qos_resume_latency_us"] = "0\n"
        for state, (name, latency) in enumerate((("POLL", 0), ("C1", 1), ("C6", 190))):
            folder = f"{cpu.CPU}/cpu{number}/cpuidle/state{state}"
            files |= {f"{folder}/name": name, f"{folder}/latency": str(latency), f"{folder}/disable": "0"}
    files[cpu.NO_TURBO] = "0\n"
    files["/sys/devices/system/cpu/intel_pstate/status"] = "active\n"
    return FakeHost(files)


def test_cpus_are_read_as_one():
    assert cpu.read(sysfs(), ALL) == replace(
        INTEL,
        governor=(("powersave", "0-1"),),
        epp=(("balance_performance", "0-1"),),
        min_khz=(("800000", "0-1"),),
        max_khz=(("3800000", "0-1"),),
        latency_us=(("any", "0-1"),),
    )


def test_what_is_not_wanted_is_not_read():
    assert cpu.read(sysfs(), CpuWant(boost=True)) == CpuSeen(driver="intel_pstate", mode="active", boost=True)


def test_a_machine_without_frequency_control_has_nothing():
    assert cpu.read(FakeHost(), ALL) == CpuSeen()


def test_policies_that_differ_are_told_apart():
    host = sysfs()
    host.files[f"{cpu.CPUFREQ}/policy1/scaling_governor"] = "performance\n"
    host.files[f"{cpu.CPUFREQ}/policy1/cpuinfo_max_freq"] = "3700000\n"
    found = cpu.read(host, ALL)
    assert found.governor == (("performance", "1"), ("powersave", "0"))
    assert found.range_khz == (800000, 3700000)


def test_one_file_that_cannot_be_read_makes_the_setting_unknown():
    host = sysfs()
    host.unreadable[f"{cpu.CPUFREQ}/policy1/scaling_governor"] = "EIO"
    assert isinstance(cpu.read(host, ALL).governor, Unknown)
    del host.files[f"{cpu.CPUFREQ}/policy1/energy_performance_preference"]
    assert cpu.read(host, ALL).epp == Unknown("only some CPUs have energy_performance_preference")


def test_idle_states_are_read_where_there_is_no_limit():
    host = sysfs()
    for number in (0, 1):
        del host.files[cpu.latency_path(number)]
    host.files[f"{cpu.CPU}/cpu1/cpuidle/state2/disable"] = "1"
    found = cpu.read(host, ALL)
    assert found.idle_states == (("POLL C1", "1"), ("POLL C1 C6", "0"))
    assert found.state_latency_us == (("POLL", 0), ("C1", 1), ("C6", 190))


def made(host, **changes):
    cpu_step(
        Step("dvfs cpu", tuple(Change(("cpu", name), old, new, "x") for name, (old, new) in changes.items())), host
    )
    return [(path.rpartition("/")[2], value) for path, value in host.writes]


def test_the_governor_goes_first_also_when_undone():
    epp = ((("performance", "0"),), (("power", "0"),))
    governor = ((("performance", "0"),), (("powersave", "0"),))
    writes = made(sysfs((0,), scaling_governor="performance"), epp=epp, governor=governor)
    assert writes == [("scaling_governor", "powersave"), ("energy_performance_preference", "power")]


def test_what_already_is_so_is_not_written_again():
    host = sysfs((0,), energy_performance_preference="performance", scaling_governor="performance")
    assert made(host, epp=((("power", "0"),), (("performance", "0"),))) == []


@pytest.mark.parametrize(
    ("now", "low", "high", "first"),
    [
        ("1500000", "2000000", "3000000", "scaling_max_freq"),
        ("3800000", "900000", "1200000", "scaling_min_freq"),
    ],
)
def test_the_lowest_never_passes_the_highest(now, low, high, first):
    host = sysfs((0,), scaling_max_freq=now)
    writes = made(host, min_khz=((), ((low, "0"),)), max_khz=((), ((high, "0"),)))
    assert writes[0][0] == first
    assert dict(writes) == {"scaling_min_freq": low, "scaling_max_freq": high}


@pytest.mark.parametrize(("value", "text"), [("any", "0"), ("0", "n/a"), ("20", "20")])
def test_no_limit_and_no_latency_are_two_things(value, text):
    host = sysfs((0,))
    assert made(host, latency_us=((), ((value, "0"),))) == [("pm_qos_resume_latency_us", text)]
    assert cpu.read(host, ALL).latency_us == ((value, "0"),)


@pytest.mark.parametrize(("on", "text"), [(True, "0"), (False, "1")])
def test_intel_says_the_opposite_of_boost(on, text):
    assert made(sysfs((0,)), boost=(not on, on)) == [("no_turbo", text)]


def test_boost_of_other_drivers():
    host = sysfs((0,))
    del host.files[cpu.NO_TURBO]
    host.files[cpu.BOOST] = "1\n"
    assert cpu.read(host, ALL).boost is True
    assert made(host, boost=(True, False)) == [("boost", "0")]


def test_states_are_disabled_by_name():
    host = sysfs((0,))
    made(host, idle_states=((), (("POLL C1", "0"),)))
    assert [host.read(f"{cpu.CPU}/cpu0/cpuidle/state{n}/disable") for n in range(3)] == ["0", "0", "1"]


@pytest.mark.parametrize("text", ["", "0", "0-3", "0,2-3,8"])
def test_cpu_lists(text):
    assert cpu_list(cpu_numbers(text)) == text


def test_spreads():
    assert spread({0: "a", 2: "a", 1: "b"}) == (("a", "0,2"), ("b", "1"))
    assert everywhere("c", (("a", "0,2"), ("b", "1"))) == (("c", "0-2"),)
