"""What each host is told."""

import pytest

from gpufab_cli.errors import GpufabError, SpecErrors
from gpufab_cli.intent.compile import FEATURES, compile_wants
from gpufab_cli.module_utils.schema import decode, encode
from gpufab_cli.spec.lock import Lock
from tests.fabrics import lock, spec


def test_every_port_is_the_device_that_the_lock_names():
    wants = compile_wants(spec(), lock())
    assert list(wants) == ["gpu01", "gpu02", "gpu03"]
    (first, second) = wants["gpu02"]["roce"].ports
    assert (first.rail, first.pci, first.mac, first.serial) == (
        "compute/0",
        "0000:18:00.0",
        "02:00:00:00:02:00",
        "SN20",
    )
    assert (second.qos, second.mtu) == ("dcqcn", 9000)


def test_node_is_told_the_other_features():
    wants = compile_wants(spec(), lock())["gpu01"]
    assert wants["node"].features == ("roce",)
    assert list(wants) == [name for name in FEATURES if name in wants]


def test_what_is_compiled_fits_the_types_of_the_core():
    for wants in compile_wants(spec(), lock()).values():
        for want in wants.values():
            assert decode(type(want), encode(want)) == want


def test_a_profile_without_ports_has_no_roce():
    wants = compile_wants(spec(("    ports: [{network: compute, rail: 0-1}]", "    ports: []")), lock())
    assert list(wants["gpu01"]) == ["node"]
    assert wants["gpu01"]["node"].features == ()


@pytest.mark.parametrize("state", ["maintenance", "absent"])
def test_a_host_out_of_service_is_told_nothing_and_needs_no_lock(state):
    fabric = spec(('"10.0.0.[11-13]"}', f'"10.0.0.[11-13]", state: {state}}}'))
    assert compile_wants(fabric, Lock()) == {}


def test_hosts_that_are_not_locked_are_named():
    with pytest.raises(GpufabError, match=r"2 hosts are not in it: gpu02, gpu03") as caught:
        compile_wants(spec(), lock(hosts=(1,)))
    assert caught.value.hint == "run gpufab lock"


def test_every_host_with_a_missing_rail_is_named():
    with pytest.raises(SpecErrors) as caught:
        compile_wants(spec(), lock(rails=1))
    assert [error.message for error in caught.value.errors] == [
        f"fabric.lock.yml: no device for gpu0{number} compute/1" for number in (1, 2, 3)
    ]
