"""The resolved fabric: every port of every host once, at the device that the lock has for it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpufab_cli.fabric.model import Pin
from gpufab_cli.fabric.resolve import load_resolved, locked_hosts, locked_rails, resolve
from gpufab_cli.intent.compile import compile_wants
from gpufab_cli.spec import source
from gpufab_cli.spec.addressing import port_address
from gpufab_cli.spec.load import validate
from gpufab_cli.spec.lock import Lock, LockedGpu, LockedHost, LockedPort, dump
from gpufab_cli.spec.model import FabricSpec
from tests.fabrics import changed, lock, spec
from tests.golden.cases import EXAMPLES

STATES = ("active", "maintenance", "absent")


def text(compute, storage, states, leaves):
    """A fabric with so many RoCE and InfiniBand rails, and a host of each state and leaf in turn."""
    ports = [f"{{network: compute, rail: 0-{compute - 1}}}"] + ["{network: fast, rail: 0}"] * storage
    hosts = "\n".join(
        f"  - {{name: gpu{number:02d}, profile: box, state: {state}{f', leaf: {leaf}' if leaf else ''}}}"
        for number, (state, leaf) in enumerate(zip(states, leaves, strict=True), 1)
    )
    return f"""\
name: made
networks:
  compute:
    transport: roce
    speed_gbps: 400
    mtu: 9000
    rails: {compute}
    qos: dcqcn
    addressing: {{ipv4: "10.{{rail}}.0.{{host}}/16"}}
  fast: {{transport: infiniband, speed_gbps: 200}}
qos:
  dcqcn: {{lossless: [{{priority: 3, dscp: [26]}}], cnp: {{priority: 6, dscp: 48}}}}
profiles:
  box:
    ports: [{", ".join(ports)}]
hosts:
{hosts}
"""


@st.composite
def fabrics(draw):
    """A fabric and a lock that may lack hosts and ports, and have ones that the fabric does not."""
    states = draw(st.lists(st.sampled_from(STATES), min_size=1, max_size=5))
    leaves = draw(st.lists(st.sampled_from(("", "leaf-a", "leaf-b")), min_size=len(states), max_size=len(states)))
    made = text(draw(st.integers(1, 3)), draw(st.integers(0, 1)), states, leaves)
    fabric = validate(source.parse(made, "fabric.yml"), FabricSpec)
    rails = ["compute/0", "compute/1", "compute/2", "fast/0", "gone/7"]
    hosts = {}
    for host in range(1, 7):
        if not draw(st.booleans()):
            continue
        known = draw(st.sets(st.sampled_from(rails)))
        hosts[f"gpu{host:02d}"] = LockedHost(
            ports={rail: locked(draw, host, rails.index(rail)) for rail in sorted(known)},
            gpus=tuple(LockedGpu(pci=f"0000:{number + 64:02x}:00.0") for number in range(draw(st.integers(0, 2)))),
        )
    return fabric, Lock(hosts=hosts)


def locked(draw, host, number):
    return LockedPort(
        pci=f"0000:{number + 1:02x}:00.0",
        mac=draw(st.sampled_from((None, f"02:00:00:00:{host:02x}:{number:02x}"))),
        guid=draw(st.sampled_from((None, f"0000:0000:{host:04x}:{number:04x}"))),
        serial=draw(st.sampled_from((None, f"SN{host}"))),
        psid=draw(st.sampled_from((None, "MT_0000000838"))),
    )


@given(fabrics())
def test_every_port_of_every_host_is_resolved_once_as_the_lock_pins_it(drawn):
    fabric, pinned = drawn
    found = resolve(fabric, pinned)
    assert list(found.hosts) == [host.name for host in fabric.hosts if host.state != "absent"]
    assert [host.name for host in found.active] == [host.name for host in fabric.in_state("active")]
    for host in fabric.in_state("active", "maintenance"):
        resolved = found.hosts[host.name]
        known = pinned.hosts.get(host.name, LockedHost())
        assert (resolved.address, resolved.kind, resolved.state, resolved.leaf) == (
            host.address,
            host.profile,
            host.state,
            host.leaf,
        )
        assert resolved.gpus == tuple(gpu.pci for gpu in known.gpus)
        rails = [rail for rail in fabric.rails(host) if str(rail) in known.ports]
        assert [port.rail for port in resolved.ports.values()] == rails
        for rail in rails:
            port, network = resolved.port(rail), fabric.networks[rail.network]
            assert port is resolved.ports[port.name]
            assert port.pin == Pin(**known.ports[str(rail)].model_dump())
            address = port_address(fabric, host, rail)
            assert port.address == (str(address) if address else None)
            assert (port.transport, port.mtu, port.speed_gbps, port.qos) == (
                network.transport,
                network.mtu,
                network.speed_gbps,
                network.qos,
            )
            assert port.rdma == (network.transport != "ethernet")


@given(fabrics())
def test_an_active_host_is_told_something_or_is_named_with_what_it_lacks(drawn):
    fabric, pinned = drawn
    found = resolve(fabric, pinned)
    known = {name: set(host.ports) for name, host in pinned.hosts.items()}
    lacking = {
        host.name
        for host in fabric.in_state("active")
        if host.name not in known or set(map(str, fabric.rails(host))) - known[host.name]
    }
    assert set(found.unlocked) == lacking
    assert found.wrong == {}
    wants = compile_wants(found)
    assert set(wants) | set(wants.unlocked) == {host.name for host in found.active}
    assert not set(wants) & set(wants.unlocked)


def test_what_is_lacking_is_an_error_with_a_way_out():
    found = resolve(spec(), lock(hosts=(1, 2), rails=1)).unlocked
    assert [(error.message, error.hint) for error in found.values()] == [
        ("fabric.lock.yml: no device for gpu01 compute/1", "run gpufab lock --update gpu01"),
        ("fabric.lock.yml: no device for gpu02 compute/1", "run gpufab lock --update gpu02"),
        (
            "fabric.lock.yml: gpu03 is not in it",
            "when it answers: gpufab lock --limit gpu03, gpufab render; all others go on without it",
        ),
    ]


def test_a_bond_over_two_cards_is_named_for_every_host_that_is_active():
    hosts = '{name: "gpu[01-03]", profile: box, address: "10.0.0.[11-13]"}'
    fabric = spec(
        ("{network: compute, rail: 0-1}", "{network: compute, rail: 0-1, bond: {name: bond0}}"),
        (hosts, f"{hosts}\n  - {{name: x, profile: box, state: maintenance}}"),
    )
    pinned = Lock(hosts={**lock().hosts, "x": lock(hosts=(9,)).hosts["gpu09"]})
    found = resolve(fabric, pinned)
    assert [error.message for error in found.wrong.values()] == [
        f"gpu0{number}: compute/0 and compute/1 are of two cards, and so no RoCE LAG as bond0" for number in (1, 2, 3)
    ]
    assert found.unlocked == {}
    assert list(found.hosts["x"].ports) == ["compute/0", "compute/1"]


def test_an_override_is_in_the_host_s_own_profile():
    hosts = '{name: "gpu[01-03]", profile: box, address: "10.0.0.[11-13]"}'
    more = f"{hosts}\n  - {{name: odd, profile: box, override: {{takeover: [dcbx]}}}}"
    found = resolve(spec((hosts, more)), lock())
    assert found.hosts["odd"].profile.takeover == ("dcbx",)
    assert (found.hosts["odd"].overridden, found.hosts["gpu01"].overridden) == (True, False)
    assert found.hosts["gpu01"].profile.takeover == ()


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_are_whole(repository, name):
    found = load_resolved(repository / "inventory" / name / "fabric.yml")
    assert found.active
    assert not found.unlocked
    assert not found.wrong


def test_the_lock_alone(tmp_path):
    fabric = tmp_path / "fabric.yml"
    assert (locked_hosts(fabric), locked_rails(fabric, "gpu01")) == (frozenset(), {})
    (tmp_path / "fabric.lock.yml").write_text(dump(lock(hosts=(1, 2))))
    fabric.write_text(changed())
    assert locked_hosts(fabric) == {"gpu01", "gpu02"}
    assert locked_rails(fabric, "gpu02") == {"0000:18:00.0": "compute/0", "0000:28:00.0": "compute/1"}
    assert locked_rails(fabric, "gpu03") == {}
