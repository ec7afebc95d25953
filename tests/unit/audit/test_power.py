"""Clocks and power in an audit: the host that is limited lower than the rest, and values in words."""

from dataclasses import replace

import pytest

from gpufab_cli.audit.fabric import Facts
from gpufab_cli.catalogue import Severity
from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.report.values import difference
from tests.unit.core.dvfs_node import GOOD, GPU0, GPU1, snapshot

HOSTS = ("gpu01", "gpu02", "gpu03")


def findings(**changed):
    facts = Facts()
    for host in HOSTS:
        facts.note(host, snapshot(changed.get(host, {GPU0: GOOD, GPU1: GOOD})), {})
    return facts.findings()


def test_hosts_that_are_limited_alike():
    assert findings() == ()


def test_the_host_that_is_capped_lower_is_named_with_its_limit_and_reason():
    low = replace(GOOD, power_limit_w=300.0, power_enforced_w=300.0, throttle=0x24)
    (finding,) = findings(gpu02={GPU0: low, GPU1: low})
    assert (finding.code, finding.hosts, finding.severity) == ("fabric.power-outlier", ("gpu02",), Severity.INFO)
    assert finding.evidence == (
        "2 GPUs (NVIDIA H100 80GB HBM3) limited to 300 W, held at its power limit, "
        "slowed down by the driver: too hot; most have 650 W"
    )


def test_one_gpu_is_enough_and_what_is_enforced_counts():
    (finding,) = findings(gpu03={GPU0: GOOD, GPU1: replace(GOOD, power_enforced_w=500.0)})
    assert finding.evidence.startswith(f"{GPU1} (NVIDIA H100 80GB HBM3) limited to 500 W;")


def test_a_limit_that_is_higher_is_no_outlier():
    assert findings(gpu02={GPU0: replace(GOOD, power_limit_w=700.0, power_enforced_w=700.0)}) == ()


def test_models_are_compared_among_themselves():
    t4 = replace(GOOD, name="Tesla T4", power_limit_w=70.0, power_enforced_w=70.0)
    assert findings(gpu02={GPU0: t4}) == ()


@pytest.mark.parametrize(
    "gpus", [Unknown("no driver"), {GPU0: replace(GOOD, power_limit_w=Unknown("x"), power_enforced_w=ABSENT)}]
)
def test_what_is_unknown_says_nothing(gpus):
    assert findings(gpu02=gpus) == ()


@pytest.mark.parametrize(
    ("name", "current", "desired", "text"),
    [
        ("persistence", False, True, "off → on"),
        ("power_limit_w", 700.0, 650, "700 W → 650 W"),
        ("graphics_mhz", ABSENT, (1200, 1980), "unset → 1200-1980 MHz"),
        ("graphics_mhz", (1200, 1980), (), "1200-1980 MHz → unlocked"),
        ("memory_mhz", (1593, 1593), (2619, 2619), "1593 MHz → 2619 MHz"),
        ("cpu/governor", (("performance", "0-5"), ("powersave", "6-7")), (("performance", "0-7"),),
         "performance on 0-5, powersave on 6-7 → performance"),
        ("max_khz", (("3800000", "0-7"),), (("2000000", "0-7"),), "3800000 kHz → 2000000 kHz"),
        ("latency_us", (("any", "0-7"),), (("2", "0-7"),), "any µs → 2 µs"),
        ("idle_states", (("POLL C1", "0-7"),), (("", "0-7"),), "POLL C1 → none"),
        ("boost", Unknown("EIO"), True, "UNKNOWN(EIO) → on"),
    ],
)  # fmt: skip
def test_values_in_words(name, current, desired, text):
    assert difference(name, current, desired) == text
