"""The checks of clocks and power, each on a node as declared and on one where just that is wrong."""

import inspect

import pytest

from gpufab_cli.reach.target import Target
from gpufab_cli.verify import power, test_dvfs
from gpufab_cli.verify.expected import Node
from gpufab_cli.verify.reading import Reading, Section, UnreadableError

PCI = "0000:1b:00.0"
GPU = """\
<nvidia_smi_log><gpu id="00000000:1B:00.0"><persistence_mode>Enabled</persistence_mode>
<mig_mode><current_mig>Disabled</current_mig></mig_mode><ecc_mode><current_ecc>Enabled</current_ecc></ecc_mode>
<gpu_power_readings><requested_power_limit>650.00 W</requested_power_limit></gpu_power_readings>
<clocks><graphics_clock>1200 MHz</graphics_clock></clocks></gpu></nvidia_smi_log>
"""
WISH = {
    "policies": {
        "default": {"persistence": True, "power_limit_w": 650, "graphics_mhz": [1200, 1980], "ecc": True, "mig": False}
    },
    "gpus": [{"pci": PCI, "policy": "default"}],
    "cpu": {
        "governor": "powersave", "epp": "power", "min_mhz": 800, "max_mhz": 2000, "boost": True, "max_cstate_us": 2,
        "takeover": False, "tuned_profile": "hpc",
    },
}  # fmt: skip
HEALTHY = {
    "gpus": GPU,
    "cpu/scaling_governor": "powersave",
    "cpu/energy_performance_preference": "power",
    "cpu/scaling_min_freq": "800000",
    "cpu/scaling_max_freq": "2000000",
    "cpu/no_turbo": "0",
    "cpu/pm_qos_resume_latency_us": "2",
    "tuned": "hpc",
}
CHECKS = [check for name, check in vars(test_dvfs).items() if name.startswith("test_") and inspect.isfunction(check)]


def node(wish=WISH):
    return Node(
        Target("gpu01", "gpu01", None, None, None, "none", "/usr/bin/python3", "active"), {"dvfs": wish}, (), (), ()
    )


def reading(**changed):
    found = {**HEALTHY, **{name.replace("__", "/"): text for name, text in changed.items()}}
    return Reading({name: Section(name, "0", text) for name, text in found.items() if text is not None})


def outcomes(read, wish=WISH):
    """What each check that has something to say says."""
    said = {}
    for check in CHECKS:
        arguments = {"node": node(wish), "reading": read}
        try:
            check(**{name: arguments[name] for name in inspect.signature(check).parameters})
        except AssertionError as error:
            said[check.__name__] = str(error).splitlines()[0]
        except UnreadableError as error:
            said[check.__name__] = f"unknown: {error}"
    return said


def test_a_node_as_declared():
    assert outcomes(reading()) == {}


@pytest.mark.parametrize(
    ("changed", "check", "words"),
    [
        ({"gpus": GPU.replace("650.00", "700.00")}, "test_power_limit", f"{PCI}: limited to 700 W, wanted 650 W"),
        ({"gpus": GPU.replace("1200 MHz", "1995 MHz")}, "test_graphics_clock", f"{PCI}: runs at 1995 MHz"),
        ({"gpus": GPU.replace("650.00 W", "N/A")}, "test_power_limit", "unknown: nvidia-smi does not tell the power"),
        ({"gpus": GPU.replace("persistence_mode>Enabled", "persistence_mode>Disabled")}, "test_persistence", "is off"),
        ({"gpus": GPU.replace("current_ecc>Enabled", "current_ecc>Disabled")}, "test_gpu_modes", "ECC is off"),
        ({"gpus": GPU.replace("current_mig>Disabled", "current_mig>Enabled")}, "test_gpu_modes", "MIG is on"),
        ({"cpu__scaling_governor": "performance\npowersave"}, "test_governor", "performance on some CPUs"),
        ({"cpu__energy_performance_preference": "default"}, "test_epp", "EPP is default"),
        ({"cpu__scaling_min_freq": "400000"}, "test_lowest_frequency", "wanted 800000"),
        ({"cpu__scaling_max_freq": "3800000"}, "test_highest_frequency", "wanted 2000000"),
        ({"cpu__no_turbo": "1"}, "test_boost", "boost is off"),
        ({"cpu__no_turbo": None, "cpu__boost": "0"}, "test_boost", "boost is off"),
        ({"cpu__pm_qos_resume_latency_us": "0"}, "test_idle_latency", "wanted 2"),
        ({"cpu__pm_qos_resume_latency_us": None, "cpu__idle": "C1\t1\t0\nC6\t290\t0"}, "test_idle_latency", "C6, 290"),
        ({"cpu__pm_qos_resume_latency_us": None, "cpu__idle": None}, "test_idle_latency", "unknown: cpuidle"),
        ({"cpu__pm_qos_resume_latency_us": None, "cpu__idle": "none"}, "test_idle_latency", "shows its idle states"),
        ({"cpu__pm_qos_resume_latency_us": None, "cpu__idle": "C1\t?\t0"}, "test_idle_latency", "unknown: latency"),
        ({"cpu__no_turbo": "x"}, "test_boost", "unknown: no_turbo: x is neither"),
        ({"tuned": "balanced"}, "test_tuned_profile", "balanced active"),
    ],
)
def test_what_is_wrong_is_told_by_its_own_check(changed, check, words):
    said = outcomes(reading(**changed))
    assert list(said) == [check]
    assert words in said[check]


def test_idle_states_that_are_forbidden_are_fine():
    assert outcomes(reading(cpu__pm_qos_resume_latency_us=None, cpu__idle="C1\t1\t0\nC6\t290\t1")) == {}


def test_a_gpu_that_is_gone_is_named():
    said = outcomes(reading(gpus="<nvidia_smi_log></nvidia_smi_log>"))
    assert {text for name, text in said.items()} == {f"nvidia-smi does not know {PCI}"}


def test_an_older_log_has_other_names():
    old = GPU.replace("gpu_power_readings", "power_readings").replace("requested_power_limit", "power_limit")
    assert power.gpus(old)[PCI].power_limit_w == 650


@pytest.mark.parametrize("text", ["", "\x7fELF", "<a>", '<log><gpu id="x"/></log>'])
def test_anything_else_is_unknown(text):
    assert all(said.startswith("unknown") for said in outcomes(reading(gpus=text)).values())


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        (("dvfs",), True),
        (("dvfs", "gpus"), True),
        (("dvfs", "cpu", "governor"), True),
        (("dvfs", "cpu", "x"), False),
        (("dvfs", "jobs", "prolog_dir"), False),
        (("roce",), False),
    ],
)
def test_only_what_is_wanted_is_checked(path, wanted):
    assert node().wishes_for(path) is wanted


def test_no_gpus_are_no_wish():
    assert not node({"policies": {}, "gpus": []}).wishes_for(("dvfs", "gpus"))
