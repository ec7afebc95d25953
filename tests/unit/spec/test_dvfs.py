"""What a profile may say of clocks and power."""

import pytest

from gpufab_cli.spec.gpu_models import MODELS, device_id
from tests.fabrics import refusals, spec

BOX = "ports: [{network: compute, rail: 0-1}]"


def profile(text):
    return spec((BOX, f"{BOX}\n    {text}")).profiles["box"]


def refused(text):
    return "\n".join(refusals((BOX, f"{BOX}\n    {text}")))


def test_a_whole_profile():
    found = profile(
        "gpus: {model: H100-SXM5-80GB, count: 8, persistence: true, power_limit_w: 650,"
        " clocks_mhz: {graphics: [1200, 1980], memory: 2619}, ecc: true, mig: false,"
        ' overrides: {3: {power_limit_w: 600, reason: "runs hot"}}}\n'
        "    cpu: {governor: powersave, epp: balance_performance, min_mhz: 800, boost: true, max_cstate_us: 2}\n"
        "    jobs: {scheduler: slurm}"
    )
    assert found.gpus.of(0).power_limit_w == 650
    assert (found.gpus.of(3).power_limit_w, found.gpus.of(3).persistence) == (600, True)
    assert found.cpu.max_cstate_us == 2
    assert found.jobs.prolog_dir == "/etc/slurm/prolog.d"


def test_nothing_said_is_nothing_managed():
    found = spec().profiles["box"]
    assert (found.gpus, found.cpu, found.jobs) == (None, None, None)


def test_an_override_of_one_clock_leaves_the_other():
    gpus = profile(
        "gpus: {persistence: true, clocks_mhz: {graphics: [1200, 1980], memory: 2619},"
        " overrides: {1: {clocks_mhz: {graphics: unlocked}, reason: bench}}}"
    ).gpus
    assert (gpus.of(1).clocks_mhz.graphics, gpus.of(1).clocks_mhz.memory) == ("unlocked", 2619)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("gpus: {power_limit_w: 650}", "power_limit_w needs persistence"),
        ("gpus: {persistence: false, clocks_mhz: {graphics: [1200, 1980]}}", "clocks_mhz needs persistence"),
        ("gpus: {persistence: true, clocks_mhz: {graphics: [3201, 1980]}}", "3201 is above 1980"),
        ("gpus: {model: H100-SXM5-80}", "no GPU model 'H100-SXM5-80'; did you mean H100-SXM5-80GB?"),
        ("gpus: {count: 2, overrides: {2: {ecc: true, reason: x}}}", "there is no GPU 2, they are 0 to 1"),
        ("gpus: {overrides: {0: {reason: x}}}", "nothing is otherwise than for the others"),
        ("gpus: {persistence: true, overrides: {0: {ecc: false}}}", "reason"),
        ("cpu: {governor: performance, epp: power}", "the governor performance refuses EPP power"),
        ("cpu: {min_mhz: 3000, max_mhz: 2000}", "3000 is above max_mhz 2000"),
        ("cpu: {owner: tuned}", "goes with owner: tuned, and that with it"),
        ("cpu: {tuned_profile: hpc}", "goes with owner: tuned, and that with it"),
        ("cpu: {owner: tuned, tuned_profile: hpc, governor: performance}", "is tuned's to set here"),
        ("jobs: {scheduler: slurm}", "the profile's gpus give no bounds"),
        ("gpus: {persistence: true}\n    jobs: {scheduler: slurm}", "the profile's gpus give no bounds"),
        ("jobs: {scheduler: slurm, prolog_dir: ../x}", "an absolute path"),
    ],
)
def test_contradictions_are_refused(text, message):
    assert message in refused(text)


@pytest.mark.parametrize(
    "text", ["cpu: {governor: performance, epp: performance}", "cpu: {governor: performance, epp: 0}"]
)
def test_what_agrees_is_not(text):
    assert profile(text).cpu.governor == "performance"


def test_models():
    assert device_id("A100-SXM4-80GB") == "0x20b2"
    assert device_id("10de:20b2") == "0x20b2"
    assert device_id("1002:74a1") is None
    assert len(set(MODELS.values())) == len(MODELS)
