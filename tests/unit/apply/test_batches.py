"""Which hosts come first and which together."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufab_cli.apply.batches import Portions, batch_size, batches

HOSTS = tuple(f"gpu{number:02d}" for number in range(1, 11))


def sizes(**portions):
    return [len(batch) for batch in batches(HOSTS, Portions(**portions))]


@pytest.mark.parametrize(
    ("portions", "expected"),
    [
        ({}, [1, 3, 3, 3]),
        ({"batch": "100%"}, [1, 9]),
        ({"batch": "4"}, [1, 4, 4, 1]),
        ({"batch": "1%"}, [1] * 10),
        ({"canary": 0, "batch": "50%"}, [5, 5]),
        ({"canary": 0, "batch": "100%"}, [10]),
        ({"canary": 3, "batch": "99"}, [3, 7]),
        ({"canary": 99}, [10]),
    ],
)
def test_sizes(portions, expected):
    assert sizes(**portions) == expected


@pytest.mark.parametrize(("batch", "hosts", "size"), [("25%", 1, 1), ("25%", 9, 3), ("8", 3, 8), ("100%", 7, 7)])
def test_a_share_is_rounded_up(batch, hosts, size):
    assert batch_size(batch, hosts) == size


def test_a_canary_by_name():
    assert batches(HOSTS, Portions(canaries=("gpu05",), batch="100%"))[0] == ("gpu05",)


def test_a_canary_without_work_is_replaced():
    assert batches(HOSTS, Portions(canaries=("nfs01",)))[0] == ("gpu01",)


def test_a_host_that_nothing_is_known_of_is_no_canary():
    found = batches(HOSTS, Portions(batch="100%"), frozenset({"gpu01", "gpu04"}))
    assert found[0] == ("gpu02",)
    assert found[-1][-2:] == ("gpu01", "gpu04")


def test_no_hosts():
    assert batches((), Portions()) == ()


@given(
    st.integers(0, 60),
    st.integers(0, 5),
    st.one_of(st.integers(1, 20).map(str), st.integers(1, 100).map(lambda share: f"{share}%")),
    st.sets(st.integers(0, 60)),
)
def test_every_host_is_in_one_batch(count, canary, batch, last):
    hosts = tuple(f"h{number}" for number in range(count))
    found = batches(hosts, Portions(canary, (), batch), frozenset(f"h{number}" for number in last))
    assert sorted(host for part in found for host in part) == sorted(hosts)
    assert all(found)
