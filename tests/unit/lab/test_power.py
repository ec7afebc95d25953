"""Clocks and power: what the GPUs' driver keeps and forgets, and what cpufreq and cpuidle take and refuse."""

import errno

import pytest

from gpufab_cli.lab import machine
from gpufab_cli.lab.hardware import drift_power, gpus
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.state import Fault, State
from gpufab_cli.lab.hardware.sysfs.mount import Sysfs, build
from gpufab_cli.lab.hardware.tools.answer import Request
from gpufab_cli.lab.hardware.tools.dispatch import answer
from tests.unit.lab.conftest import FakeNode, whole

CPU = "/devices/system/cpu"
POLICY = f"{CPU}/cpufreq/policy0"


def make(name, tmp_path):
    hw = Hardware(machine.load(name), machine.Identity("n1"), tmp_path / f"{name}.json")
    hw.node = FakeNode(hw)
    return hw


@pytest.fixture
def a100(tmp_path):
    return make("hgx-a100-80", tmp_path)


def smi(hw, *argv, uid=0):
    return answer(hw, Request("nvidia-smi", argv, uid, 1))


def query(hw, fields, index=0):
    return smi(hw, "-i", str(index), f"--query-gpu={fields}", "--format=csv,noheader,nounits").stdout.strip()


# ---- GPUs ------------------------------------------------------------------------------------------------------------


def test_without_persistence_a_limit_is_lost_with_the_last_client(hw):
    said = smi(hw, "-i", "0", "-pl", "500")
    assert said.rc == 0
    assert "Warning: persistence mode is disabled" in said.stdout
    assert query(hw, "power.limit") == "700.00"


def test_with_persistence_it_stays_until_the_driver_goes(hw):
    smi(hw, "-i", "0", "-pm", "1")
    assert smi(hw, "-i", "0", "-pl", "500").stdout.endswith("was set to 500.00 W from 700.00 W.\nAll done.\n")
    assert query(hw, "power.limit,enforced.power.limit") == "500.00, 500.00"
    assert query(hw, "power.limit", 1) == "700.00"
    loads = hw.state.gpu_loads
    gpus.reload(hw)
    assert query(hw, "persistence_mode,power.limit") == "Disabled, 700.00"
    assert hw.state.gpu_loads == loads + 1


def test_a_lock_is_clamped_without_a_word_and_no_query_tells_it(hw):
    smi(hw, "-pm", "1")
    assert 'set to "(gpuClkMin 100, gpuClkMax 3105)"' in smi(hw, "-lgc", "100,3105").stdout
    assert hw.state.gpus[0].graphics == (210, 1980)
    assert query(hw, "clocks.gr") == "345"


def test_a_lock_shows_only_in_the_clock_that_runs(hw):
    smi(hw, "-pm", "1")
    smi(hw, "-lgc", "1200,1500")
    assert query(hw, "clocks.gr") == "1200"
    hw.set_fault(Fault("gpu-busy"))
    assert query(hw, "clocks.gr") == "1500"
    smi(hw, "-rgc")
    assert query(hw, "clocks.gr") == "1980"


def test_what_is_not_supported_is_a_warning_and_exit_0(tmp_path):
    t4 = make("t4-guest", tmp_path)
    said = smi(t4, "-lmc", "5001,5001")
    assert said.rc == 0
    assert "not supported" in said.stdout
    assert "Treating as warning" in said.stdout
    assert smi(t4, "-mig", "1").rc == 0
    assert query(t4, "mig.mode.current,ecc.mode.current") == "[N/A], Enabled"


def test_a_limit_out_of_range_names_the_range(tmp_path):
    said = smi(make("t4-guest", tmp_path), "-i", "0", "-pl", "150")
    assert said.rc == 2
    assert "should be between 60.00 W and 70.00 W for GPU 00000000:02:00.0" in said.stdout


def test_only_root_may_set(hw):
    assert smi(hw, "-pm", "1", uid=1000).rc == 4
    assert query(hw, "persistence_mode") == "Disabled"


def test_mig_waits_for_a_reset_before_hopper_and_acts_at_once_from_then_on(hw, a100):
    smi(a100, "-i", "0", "-mig", "1")
    assert query(a100, "mig.mode.current,mig.mode.pending") == "Disabled, Enabled"
    smi(a100, "-i", "0", "-r")
    assert query(a100, "mig.mode.current") == "Enabled"
    a100.reboot()
    assert query(a100, "mig.mode.current") == "Enabled"
    smi(hw, "-i", "0", "-mig", "1")
    assert query(hw, "mig.mode.current") == "Enabled"
    hw.reboot()
    assert query(hw, "mig.mode.current,mig.mode.pending") == "Disabled, Disabled"


def test_ecc_comes_with_a_reboot(hw):
    smi(hw, "-i", "0", "-e", "0")
    assert query(hw, "ecc.mode.current,ecc.mode.pending") == "Enabled, Disabled"
    hw.reboot()
    assert query(hw, "ecc.mode.current") == "Disabled"


def test_a_lost_gpu_makes_every_call_fail_that_is_not_about_others(hw):
    hw.set_fault(Fault("gpu-lost", "1"))
    assert smi(hw, "--query-gpu=name", "--format=csv").rc == 15
    assert "GPU is lost" in smi(hw, "-i", "1", "--query-gpu=name", "--format=csv").stdout
    assert query(hw, "index", 0) == "0"


def test_heat_shows_as_its_reason_and_not_as_a_setting(hw):
    hw.set_fault(Fault("thermal-throttle", "2"))
    assert query(hw, "clocks_event_reasons.active,clocks.gr", 2) == "0x0000000000000020, 345"
    assert query(hw, "clocks_throttle_reasons.active", 0) == "0x0000000000000001"


def test_supported_clocks(tmp_path):
    rows = smi(
        make("hgx-a100-40", tmp_path), "-i", "0", "--query-supported-clocks=gpu_bus_id,memory,graphics",
        "--format=csv,noheader,nounits",
    ).stdout.splitlines()  # fmt: skip
    assert (rows[0], rows[-1]) == ("00000000:1B:00.0, 1215, 1410", "00000000:1B:00.0, 1215, 210")


def test_the_log_as_xml_says_the_same(hw):
    smi(hw, "-i", "3", "-pm", "1")
    smi(hw, "-i", "3", "-pl", "600")
    text = smi(hw, "-q", "-x").stdout
    assert text.count("<gpu id=") == 8
    assert "<requested_power_limit>600.00 W</requested_power_limit>" in text
    assert '<gpu id="00000000:61:00.0">' in text


def test_a_tool_that_lies_sets_nothing(hw):
    smi(hw, "-pm", "1")
    hw.set_fault(Fault("tool-lies", "nvidia-smi"))
    assert smi(hw, "-pl", "500").rc == 0
    hw.clear_fault("tool-lies")
    assert query(hw, "power.limit") == "700.00"


def test_state_survives_the_hardware_process(hw, tmp_path):
    smi(hw, "-pm", "1")
    smi(hw, "-lgc", "1200,1500")
    assert State.load(tmp_path / "state.json") == hw.state


def test_the_drivers_link_is_a_new_one_after_a_reload(running):
    sysfs, path = Sysfs(running), "/bus/pci/drivers/nvidia/0000:1b:00.0"
    before = sysfs.getattr(path)["st_ino"]
    assert sysfs.getattr(path)["st_ino"] == before
    gpus.reload(running)
    assert sysfs.getattr(path)["st_ino"] != before


# ---- CPUs ------------------------------------------------------------------------------------------------------------


class Files:
    """The files below /sys, read and written as the kernel's."""

    def __init__(self, hw):
        self.hw = hw

    def read(self, path):
        return build(self.hw).get(path).read().strip()

    def write(self, path, text):
        build(self.hw).get(path).write(text)


@pytest.fixture
def intel(running):
    return Files(running)


def refused(files, path, text):
    try:
        files.write(path, text)
    except OSError as error:
        return error.errno
    return 0


def test_active_mode_has_two_governors_and_epp(intel):
    assert intel.read(f"{POLICY}/scaling_driver") == "intel_pstate"
    assert intel.read(f"{POLICY}/scaling_available_governors") == "performance powersave"
    assert refused(intel, f"{POLICY}/scaling_governor", "ondemand") == errno.EINVAL
    intel.write(f"{POLICY}/energy_performance_preference", "power\n")
    assert intel.read(f"{POLICY}/energy_performance_preference") == "power"


def test_the_governor_performance_refuses_any_other_epp(intel):
    intel.write(f"{POLICY}/scaling_governor", "performance\n")
    assert intel.read(f"{POLICY}/energy_performance_preference") == "performance"
    assert refused(intel, f"{POLICY}/energy_performance_preference", "power") == errno.EBUSY
    intel.write(f"{POLICY}/energy_performance_preference", "performance")
    assert refused(intel, f"{POLICY}/energy_performance_preference", "turbo") == errno.EINVAL


def test_switching_the_mode_forgets_everything_and_brings_other_files(intel):
    intel.write(f"{POLICY}/scaling_governor", "performance")
    intel.write(f"{CPU}/intel_pstate/status", "passive")
    assert intel.read(f"{POLICY}/scaling_driver") == "intel_cpufreq"
    assert intel.read(f"{POLICY}/scaling_governor") == "schedutil"
    assert build(intel.hw).find(f"{POLICY}/energy_performance_preference") is None
    assert refused(intel, f"{CPU}/intel_pstate/status", "guided") == errno.EINVAL


def test_frequencies_are_clamped_without_a_word(intel):
    intel.write(f"{POLICY}/scaling_max_freq", "9000000")
    assert intel.read(f"{POLICY}/scaling_max_freq") == "3800000"
    intel.write(f"{POLICY}/scaling_max_freq", "1500000")
    intel.write(f"{POLICY}/scaling_min_freq", "2000000")
    assert intel.read(f"{POLICY}/scaling_min_freq") == "1500000"
    assert refused(intel, f"{POLICY}/scaling_min_freq", "fast") == errno.EINVAL


def test_boost_is_said_in_two_ways(intel, tmp_path):
    intel.write(f"{CPU}/intel_pstate/no_turbo", "1")
    assert intel.read(f"{POLICY}/cpuinfo_max_freq") == "2000000"
    acpi = Files(make("hgx-a100-40", tmp_path))
    acpi.write(f"{CPU}/cpufreq/boost", "0")
    assert acpi.read(f"{POLICY}/cpuinfo_max_freq") == "2250000"
    assert refused(acpi, f"{CPU}/cpufreq/boost", "2") == errno.EINVAL


def test_drivers_by_machine(a100, tmp_path):
    assert Files(a100).read(f"{POLICY}/scaling_driver") == "amd-pstate-epp"
    acpi = make("hgx-a100-40", tmp_path)
    assert Files(acpi).read(f"{POLICY}/scaling_driver") == "acpi-cpufreq"
    assert build(acpi).find(f"{CPU}/amd_pstate/status") is None
    guest = whole(build(make("t4-guest", tmp_path)))
    assert not any("cpufreq" in path or "cpuidle" in path for path in guest)


def test_idle_states_by_limit_or_by_name(intel, tmp_path):
    path = f"{CPU}/cpu0/power/pm_qos_resume_latency_us"
    for text in ("2", "n/a", "0"):
        intel.write(path, text)
        assert intel.read(path) == text
    assert refused(intel, path, "-1") == errno.EINVAL
    acpi = Files(make("hgx-a100-40", tmp_path))
    assert build(acpi.hw).find(path) is None
    acpi.write(f"{CPU}/cpu0/cpuidle/state2/disable", "1")
    assert acpi.read(f"{CPU}/cpu0/cpuidle/state2/disable") == "1"
    assert acpi.read(f"{CPU}/cpu1/cpuidle/state2/disable") == "0"


def test_a_reboot_forgets_what_was_written(intel):
    intel.write(f"{POLICY}/scaling_governor", "performance")
    intel.write(f"{CPU}/intel_pstate/no_turbo", "1")
    intel.hw.reboot()
    assert intel.read(f"{POLICY}/scaling_governor") == "powersave"
    assert intel.read(f"{CPU}/intel_pstate/no_turbo") == "0"


# ---- faults ----------------------------------------------------------------------------------------------------------


def test_one_shot_faults(running):
    smi(running, "-pm", "1")
    smi(running, "-pl", "500")
    drift_power.DRIFTS["power-reset-by-job"](running, 1)
    assert [gpus.limit(running, index) for index in range(3)] == [500.0, 700.0, 500.0]
    drift_power.DRIFTS["persistence-off"](running, 0)
    assert (running.state.gpus[0].persistence, gpus.limit(running, 0)) == (False, 700.0)
    drift_power.DRIFTS["governor-overwritten"](running, 0)
    assert Files(running).read(f"{POLICY}/scaling_governor") == "performance"
    drift_power.DRIFTS["clock-lost"](running, 0)
    assert not any(gpu.persistence for gpu in running.state.gpus)
