"""A host that is otherwise than its profile: the merged whole is what counts, and errors are told at the override."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufab_cli.spec.load import load
from gpufab_cli.spec.model import Rail
from gpufab_cli.spec.override import merge, overridden
from tests.fabrics import refusals, spec
from tests.golden.cases import EXAMPLES

HOSTS = '{name: "gpu[01-03]", profile: box, address: "10.0.0.[11-13]"}'
STORAGE = ("  management:", "  storage: {transport: roce, qos: dcqcn}\n  management:")


def another(override, name="odd"):
    return (HOSTS, f"{HOSTS}\n  - {{name: {name}, profile: box, override: {override}}}")


@pytest.mark.parametrize(
    ("base", "patch", "merged"),
    [
        ({"a": 1}, {"b": 2}, {"a": 1, "b": 2}),
        ({"a": 1}, {"a": None}, {}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 3}}, {"a": {"b": 3, "c": 2}}),
        ({"a": (1, 2)}, {"a": (3,)}, {"a": (3,)}),
        ({"a": 1}, {"a": {"b": {"c": 1, "d": None}}}, {"a": {"b": {"c": 1}}}),
        ({}, {"a": None}, {}),
    ],
)
def test_merging(base, patch, merged):
    assert merge(base, patch) == merged


plain = st.dictionaries(
    st.sampled_from("abc"),
    st.recursive(st.integers(), lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3)),
    max_size=3,
)


@given(plain, plain)
def test_merging_twice_is_merging_once_and_the_patch_wins(base, patch):
    once = merge(base, patch)
    assert merge(once, patch) == once
    assert merge({}, patch) == merge(patch, patch)
    assert set(once) == {*base, *patch}


def test_a_host_has_what_its_own_line_says():
    fabric = spec(STORAGE, another("{ports: [{network: compute, rail: 1}, {network: storage, rail: 0}]}"))
    assert fabric.rails(fabric.hosts[3]) == (Rail("compute", 1), Rail("storage", 0))
    assert fabric.rails(fabric.hosts[0]) == (Rail("compute", 0), Rail("compute", 1))


def test_null_takes_away_what_the_profile_says():
    fabric = spec(another("{ports: null}"))
    assert fabric.rails(fabric.hosts[3]) == ()


@pytest.mark.parametrize(
    ("override", "told"),
    [
        ("{ports: [{network: compute, rail: 0-2}]}", "hosts[1].override.ports[0].rail: compute has no rail 2"),
        ("{ports: [{network: compte, rail: 0}]}", "hosts[1].override.ports[0].network: no network 'compte'"),
        ("{ports: [{network: compute}]}", "hosts[1].override.ports[0].rail: missing"),
        ("{ports: {network: compute}}", "hosts[1].override.ports: a mapping is not a list"),
        ("{port: []}", "hosts[1].override.port: unknown key"),
        ("{ports: [{network: compute, rail: 1-0}]}", "hosts[1].override.ports[0].rail: range '1-0' runs backwards"),
        ("{3: 4}", "hosts[1].override[3]: 3 is read as a number, text is wanted"),
        ("[]", "hosts[1].override: a list is not a mapping"),
    ],
)
def test_a_wrong_override_is_told_at_its_place(override, told):
    found = refusals(another(override))
    assert [message for message in found if message.startswith(told)] == found[:1], found


def test_addresses_are_those_of_the_ports_a_host_really_has():
    own = another("{ports: [{network: compute, rail: 1}]}", name="gpu1")
    shared = ("mtu: 9000", 'mtu: 9000, addressing: {ipv4: "10.{rail}.0.{host}/24"}')
    assert refusals(shared, own) == [
        "networks.compute.addressing.ipv4: gpu1 compute/1 has the address of gpu01 compute/1, 10.1.0.1"
    ]


@pytest.mark.parametrize("example", EXAMPLES)
def test_nothing_overridden_is_the_profile_itself(repository, example):
    for profile in load(repository / "inventory" / example / "fabric.yml").profiles.values():
        assert overridden(profile, {}) == profile


def test_one_value_deep_inside_leaves_its_neighbours():
    gpus = "gpus: {persistence: true, power_limit_w: 650, clocks_mhz: {graphics: [1200, 1980]}}"
    fabric = spec(
        ("    ports:", f"    {gpus}\n    ports:"),
        another("{gpus: {power_limit_w: 500, clocks_mhz: {graphics: unlocked}}}"),
    )
    own, usual = fabric.profile_of(fabric.hosts[3]).gpus, fabric.profile_of(fabric.hosts[0]).gpus
    assert (own.persistence, own.power_limit_w, own.clocks_mhz.graphics) == (True, 500, "unlocked")
    assert (usual.power_limit_w, usual.clocks_mhz.graphics) == (650, (1200, 1980))
