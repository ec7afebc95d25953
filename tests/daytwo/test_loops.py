"""Nobody is disturbed undrained, given back unproven, or forgotten, whatever ends an apply and whoever else applies."""

import os

import pytest

from tests.daytwo.loops import killed, two_operators, wrong

SEED = int(os.environ.get("GPUFAB_SEED", "13"))


@pytest.mark.process
def test_a_few_kills(tmp_path):
    assert sum(killed(tmp_path, 3, SEED).values()) == 3


@pytest.mark.process
def test_two_operators_at_once_a_few_times(tmp_path):
    two_operators(tmp_path, 2, SEED)


@pytest.mark.daytwo
@pytest.mark.process
def test_a_hundred_kills(tmp_path):
    seen = killed(tmp_path, 100, SEED)
    print(*(f"{name:8} {stages}: {count}" for (name, stages), count in sorted(seen.items())), sep="\n")  # noqa: T201
    assert sum(seen.values()) == 100


@pytest.mark.daytwo
@pytest.mark.process
def test_two_operators_at_once_twenty_times(tmp_path):
    left = two_operators(tmp_path, 20, SEED)
    print(f"{left} of 20: one left a host to the other")  # noqa: T201
    assert left


@pytest.mark.parametrize(
    ("lines", "found"),
    [
        (["disturb gpu01 drained", "verified gpu01", "resume-begins gpu01"], 0),
        (["disturb gpu01 UNDRAINED"], 1),
        (["disturb gpu01 drained", "resume-begins gpu01"], 1),
        (["disturb gpu01 drained", "verified gpu02", "resume-begins gpu01"], 1),
    ],
)
def test_the_log_shows_what_is_wrong(lines, found):
    assert len(wrong([line.split() for line in lines])) == found
