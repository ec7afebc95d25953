"""Which hosts a pattern means."""

import pytest

from gpufab_cli.errors import GpufabError
from gpufab_cli.fabric.host_pattern import select

HOSTS = ("gpu01", "gpu02", "gpu03", "gpu10", "login1")


@pytest.mark.parametrize(
    ("pattern", "hosts"),
    [
        (None, HOSTS),
        ("gpu02", ("gpu02",)),
        ("gpu03,gpu01", ("gpu01", "gpu03")),
        ("gpu[01-03]", HOSTS[:3]),
        ("gpu[01,03],login1", ("gpu01", "gpu03", "login1")),
        ("gpu*", HOSTS[:4]),
        ("gpu0*, login?", ("gpu01", "gpu02", "gpu03", "login1")),
        ("gpu[02-99]", ("gpu02", "gpu03", "gpu10")),
        ("!gpu02", ("gpu01", "gpu03", "gpu10", "login1")),
        ("gpu*, !gpu[02-03]", ("gpu01", "gpu10")),
        ("!login?,gpu0*,!gpu01", ("gpu02", "gpu03")),
    ],
)
def test_a_pattern(pattern, hosts):
    assert select(pattern, HOSTS) == hosts


@pytest.mark.parametrize(
    ("pattern", "message", "hint"),
    [
        ("gpu04", "no active host matches 'gpu04'", "did you mean"),
        ("gpu01,gpu2", "no active host matches 'gpu2'", "did you mean"),
        ("", "no active host matches ''", "known"),
        ("gpu*,!gpu04", "no active host matches 'gpu04'", "did you mean"),
        ("!gpu*,!login1", "no host is left of '!gpu*,!login1'", "takes out"),
        ("gpu[3-1]", "range '3-1' runs backwards", "gpu[01-04]"),
        ("gpu[01", "'gpu[01' has an unpaired bracket", "gpu[01-04]"),
    ],
)
def test_a_slip_does_not_mean_fewer_hosts(pattern, message, hint):
    with pytest.raises(GpufabError) as caught:
        select(pattern, HOSTS)
    assert caught.value.message == message
    assert hint in caught.value.hint
