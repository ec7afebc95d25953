"""What each host is told."""

import pytest

from gpufab_cli.intent.compile import FEATURES
from gpufab_cli.module_utils.schema import decode, encode
from gpufab_cli.spec.lock import Lock, LockedPort
from tests.fabrics import PSID, compiled, lock, locked_port, spec


def test_every_port_is_the_device_that_the_lock_names():
    wants = compiled(spec(), lock())
    assert list(wants) == ["gpu01", "gpu02", "gpu03"]
    (first, second) = wants["gpu02"]["roce"].ports
    assert (first.rail, first.pci, first.mac, first.serial, first.psid) == (
        "compute/0",
        "0000:18:00.0",
        "02:00:00:00:02:00",
        "SN20",
        PSID,
    )
    assert (second.qos, second.mtu) == ("dcqcn", 9000)


def test_node_is_told_the_other_features():
    wants = compiled(spec(), lock())["gpu01"]
    assert wants["node"].features == ("roce",)
    assert list(wants) == [name for name in FEATURES if name in wants]


def test_what_is_compiled_fits_the_types_of_the_core():
    for wants in compiled(spec(), lock()).values():
        for want in wants.values():
            assert decode(type(want), encode(want)) == want


def test_a_profile_without_ports_has_no_roce():
    wants = compiled(spec(("    ports: [{network: compute, rail: 0-1}]", "    ports: []")), lock())
    assert list(wants["gpu01"]) == ["node"]
    assert wants["gpu01"]["node"].features == ()


def test_ports_that_carry_no_roce_are_told_nothing_of_it():
    fabric = spec(
        ("  management:", "  pod: {transport: infiniband, rails: 2}\n  management:"),
        ("rail: 0-1}]", "rail: 0-1}, {network: pod, rail: 0-1}, {network: management, rail: 0}]"),
        ('"gpu[01-03]"', "gpu01"),
        ('"10.0.0.[11-13]"', "10.0.0.11"),
    )
    pinned = lock()
    pinned.hosts["gpu01"].ports.update(
        {rail: locked_port(9, number) for number, rail in enumerate(("pod/0", "pod/1", "management/0"), 5)}
    )
    wants = compiled(fabric, pinned)["gpu01"]
    assert [port.rail for port in wants["roce"].ports] == ["compute/0", "compute/1"]
    assert [port.rail for port in wants["links"].ports] == ["pod/0", "pod/1", "management/0"]


def test_an_infiniband_host_has_no_roce_at_all_and_its_links_are_looked_at():
    fabric = spec(
        ("transport: roce, speed_gbps: 400, mtu: 9000, rails: 2, qos: dcqcn", "transport: infiniband, rails: 2")
    )
    pinned = lock()
    port = LockedPort(pci="0000:18:00.0", guid="a088:c203:0001:4a00", serial="SN20")
    pinned.hosts["gpu02"].ports["compute/0"] = port
    wants = compiled(fabric, pinned)["gpu02"]
    assert list(wants) == ["node", "links"]
    assert wants["node"].features == ("links",)
    first = wants["links"].ports[0]
    assert (first.rail, first.transport, first.guid, first.mac, first.speed_gbps) == (
        "compute/0",
        "infiniband",
        "a0:88:c2:03:00:01:4a:00",
        None,
        None,
    )


def test_two_networks_of_one_host_follow_their_own_qos():
    """GPU ports on priority 5, storage ports on priority 2: both right, on one host."""
    fabric = spec(
        ("  management:", "  storage: {transport: roce, qos: storage}\n  management:"),
        (
            "profiles:",
            """\
  storage:
    lossless: [{priority: 2, dscp: [16]}]
    cnp: {priority: 3, dscp: 24}
profiles:""",
        ),
        ("lossless: [{priority: 3, dscp: [26]}]", "lossless: [{priority: 5, dscp: [40]}]"),
        ("ets: {3: 60, 0: 40}", "ets: {5: 60, 0: 40}"),
        ("rail: 0-1}]", "rail: 0-1}, {network: storage, rail: 0}]"),
    )
    pinned = lock(hosts=(1, 2, 3))
    for name, host in pinned.hosts.items():
        host.ports["storage/0"] = locked_port(int(name[-1]), 5)
    want = compiled(fabric, pinned)["gpu01"]["roce"]
    followed = {port.rail: want.qos[port.qos] for port in want.ports}
    assert followed["compute/0"].pfc == (5,)
    assert followed["compute/0"].rdma_cm_tos == 40 << 2 | 2
    assert (followed["storage/0"].pfc, followed["storage/0"].cnp_priority) == ((2,), 3)


@pytest.mark.parametrize("state", ["maintenance", "absent"])
def test_a_host_out_of_service_is_told_nothing_and_needs_no_lock(state):
    fabric = spec(('"10.0.0.[11-13]"}', f'"10.0.0.[11-13]", state: {state}}}'))
    assert compiled(fabric, Lock()) == {}


def test_hosts_that_are_not_locked_are_named():
    found = compiled(spec(), lock(hosts=(1,)))
    assert list(found) == ["gpu01"]
    assert {host: why.message for host, why in found.unlocked.items()} == {
        host: f"fabric.lock.yml: {host} is not in it" for host in ("gpu02", "gpu03")
    }
    assert "gpufab lock --limit gpu02" in found.unlocked["gpu02"].hint


def test_every_host_with_a_missing_rail_is_named():
    found = compiled(spec(), lock(rails=1))
    assert found == {}
    assert [error.message for error in found.unlocked.values()] == [
        f"fabric.lock.yml: no device for gpu0{number} compute/1" for number in (1, 2, 3)
    ]


def test_what_may_be_taken_over_is_told_and_else_nothing_is():
    assert compiled(spec(), lock())["gpu01"]["roce"].takeover is None
    fabric = spec(("rail: 0-1}]", "rail: 0-1}]\n    takeover: [dcbx]"))
    assert compiled(fabric, lock())["gpu01"]["roce"].takeover == ("dcbx",)
