"""No string of a spec can leave the place it is meant for."""

import pytest

from gpufab_cli.intent.compile import FEATURES
from gpufab_cli.spec.types import RESERVED
from tests.fabrics import refusals, spec

HOSTILE = [
    "-oProxyCommand=touch /tmp/x",
    "a b",
    "a;b",
    "$(id)",
    "`id`",
    "{{ lookup('pipe', 'id') }}",
    "{% raw %}",
    "../../etc/passwd",
    "a\\nb",
    "a\\u0000b",
    "ä",
    "g\\u200bpu",
    "",
    "a" * 300,
    "a'b",
    'a\\"b',
    "a/b",
    "*",
    "all:!roce",
]


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_host_names_are_refused(text):
    assert refusals(('"gpu[01-03]"', f'"{text}"'), (', address: "10.0.0.[11-13]"', ""))


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_addresses_are_refused(text):
    assert refusals(('"gpu[01-03]"', "gpu1"), ('"10.0.0.[11-13]"', f'"{text}"'))


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("key", ["user", "python", "ssh_config"])
def test_hostile_connections_are_refused(key, text):
    if key == "ssh_config" and text in ("../../etc/passwd", "a/b"):
        return  # a path may well be these
    assert refusals(("{user: ops}", f'{{{key}: "{text}"}}'))


@pytest.mark.parametrize("text", [*HOSTILE, "Upper", "under_score", "-a", "a-"])
def test_hostile_names_of_profiles_and_networks_are_refused(text):
    assert refusals(("profiles:\n  box:", f'profiles:\n  "{text}":'), ("profile: box", f'profile: "{text}"'))
    assert refusals(("compute: {", f'"{text}": {{'), ("network: compute", f'network: "{text}"'))


@pytest.mark.parametrize(
    "name", ["1e5", "0x12", "deadbeef", "12ab34cd", "no", "on", "null", "gpu1.pod-2.example", "GPU1"]
)
def test_names_that_look_like_something_else_are_names(name):
    fabric = spec(('"gpu[01-03]"', f"'{name}'"), ('"10.0.0.[11-13]"', "10.0.0.1"))
    assert [host.name for host in fabric.hosts] == [name]


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_a_host_cannot_have_the_name_of_a_group(name):
    (told,) = refusals(('"gpu[01-03]"', name), ('"10.0.0.[11-13]"', "10.0.0.1"))
    assert told == f"hosts[0].name: host name '{name}' is reserved for the inventory"


def test_every_feature_group_is_reserved():
    assert {name for name in FEATURES if "_" not in name} <= RESERVED  # no host name has an underscore


@pytest.mark.parametrize("address", ["fd00::11", "10.0.0.1", "node1.example", "::1"])
def test_addresses_of_every_kind_are_taken(address):
    fabric = spec(('"gpu[01-03]"', "gpu1"), ('"10.0.0.[11-13]"', f'"{address}"'))
    assert fabric.hosts[0].address == address


@pytest.mark.parametrize("address", ["10.0.0.256", "10.0.0", "1.2.3.4.5", "fd00::1::2", "10.0.0.1/24", "10.0.0.01"])
def test_what_only_looks_like_an_address_is_refused(address):
    assert refusals(('"gpu[01-03]"', "gpu1"), ('"10.0.0.[11-13]"', f'"{address}"'))
