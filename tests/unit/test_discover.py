"""What living nodes say becomes a draft; what they do not say stays a comment."""

from dataclasses import replace

import pytest

from gpufab_cli.discover import Found, discover
from gpufab_cli.errors import SpecErrors
from gpufab_cli.module_utils.change import Unknown
from gpufab_cli.module_utils.devices import Devices, Upper
from gpufab_cli.spec import source
from gpufab_cli.spec.load import validate
from gpufab_cli.spec.lock import Lock, dump
from gpufab_cli.spec.model import Connection, FabricSpec
from tests.fabrics import compiled
from tests.unit.spec.test_draft import GPU, ib, nic

QOS = "qos:\n  dcqcn:\n    lossless: [{priority: 3, dscp: [26]}]\n    cnp: {priority: 6, dscp: 48}\n"


def host(number, *nics, gpus=(GPU,), address=None):
    name = f"gpu{number:02d}"
    return Found(name, address or name, Devices(nics or (nic(0, host=number), nic(1, host=number)), gpus))


def drafted(*hosts, missing=(), connection=None):
    return discover(hosts, missing, connection or Connection())


def completed(text):
    """The draft as its owner completes it."""
    return validate(source.parse(text.replace("# qos: NAME ", "qos: dcqcn ") + QOS, "f"), FabricSpec)


def errors(text):
    with pytest.raises(SpecErrors) as caught:
        validate(source.parse(text, "f"), FabricSpec)
    return [error.message.partition(": ")[2] for error in caught.value.errors]


def test_only_what_nodes_cannot_say_is_missing():
    assert errors(drafted(host(1), host(2)).fabric) == [
        "networks.roce-400g.qos: missing; a roce network follows a QoS profile"
    ]


def test_a_completed_draft_and_its_lock_compile():
    result = drafted(host(1), host(2))
    fabric = completed(result.fabric)
    network = fabric.networks["roce-400g"]
    assert (network.speed_gbps, network.rails, network.mtu) == (400, 2, 9000)
    lock = validate(source.parse(dump(result.lock), "f"), Lock)
    want = compiled(fabric, lock)["gpu02"]["roce"]
    assert [(port.rail, port.pci) for port in want.ports] == [
        ("roce-400g/0", "0000:18:00.0"),
        ("roce-400g/1", "0000:28:00.0"),
    ]


def test_equal_hosts_are_a_range_of_one_profile_others_have_their_own():
    fabric = completed(drafted(host(1), host(2), host(3, nic(0, host=3)), host(4, gpus=())).fabric)
    assert [(entry.name, entry.profile) for entry in fabric.host_entries] == [
        ("gpu[01-02]", "gpus-1-ports-2"),
        ("gpu03", "gpus-1-ports-1"),
        ("gpu04", "gpus-0-ports-2"),
    ]


def test_infiniband_needs_nothing_more():
    result = drafted(host(1, ib(0), ib(1)))
    fabric = validate(source.parse(result.fabric, "f"), FabricSpec)
    assert fabric.networks["infiniband-400g"].mtu is None
    assert "# mtu: the ports have 4092" in result.fabric
    assert result.lock.hosts["gpu01"].ports["infiniband-400g/1"].guid == "a088:c203:0000:0001"


def test_a_port_without_link_is_told_and_not_guessed():
    down = replace(nic(1), netdevs=(replace(nic(1).netdevs[0], speed_mbps=Unknown("down")),))
    result = drafted(host(1, nic(0), down))
    assert "# not drafted: gpu01 0000:28:00.0 mlx5_core, roce, speed unknown: is its link down?" in result.fabric
    assert list(result.lock.hosts["gpu01"].ports) == ["roce-400g/0"]


def test_ports_that_disagree_on_the_mtu_leave_it_open():
    other = replace(nic(1), netdevs=(replace(nic(1).netdevs[0], mtu=1500),))
    result = drafted(host(1, nic(0), other))
    assert "# mtu: the ports have 1500, 9000" in result.fabric
    assert completed(result.fabric).networks["roce-400g"].mtu is None


def test_ethernet_is_declared_and_has_no_ports():
    result = drafted(host(1, nic(0), nic(5, speed=10_000, driver="ixgbe", rdma=())))
    fabric = completed(result.fabric)
    assert fabric.networks["ethernet-10g"].transport == "ethernet"
    assert [str(rail) for rail in fabric.rails(fabric.hosts[0])] == ["roce-400g/0"]


@pytest.mark.parametrize("odd", [nic(2, is_vf=True), nic(2, nvswitch=True)], ids=["VF", "NVSwitch management"])
def test_what_is_no_port_is_in_neither_file(odd):
    result = drafted(host(1, nic(0), odd))
    assert odd.pci not in result.fabric
    assert list(result.lock.hosts["gpu01"].ports) == ["roce-400g/0"]


def test_a_host_without_anything_is_there_all_the_same():
    fabric = validate(
        source.parse(drafted(host(1, nic(0, rdma=(), netdevs=()), gpus=()), host(2, ib(0))).fabric, "f"), FabricSpec
    )
    assert fabric.rails(fabric.hosts[0]) == ()


def test_addresses_and_the_connection_are_kept_and_missing_hosts_told():
    result = drafted(
        host(1, ib(0), address="10.0.0.11"),
        missing=["gpu02: unreachable: no route\n\x1b[2Jevil: 1"],
        connection=Connection(user="ops", port=2222),
    )
    fabric = validate(source.parse(result.fabric, "f"), FabricSpec)
    assert fabric.hosts[0].address == "10.0.0.11"
    assert (fabric.connection.user, fabric.connection.port) == ("ops", 2222)
    assert "# Not in it: gpu02: unreachable: no route??" in result.fabric


def test_what_a_device_says_of_itself_cannot_leave_its_comment():
    evil = nic(1, driver="x\nhosts: []", rdma=())
    unknown = replace(
        evil, driver="mlx5_core", rdma=nic(1).rdma, netdevs=(replace(nic(1).netdevs[0], speed_mbps=Unknown("")),)
    )
    gpu = replace(GPU, vendor="0x10de\nname: evil")
    fabric = completed(drafted(host(1, nic(0), unknown, gpus=(gpu,))).fabric)
    assert fabric.name == "drafted"


def test_two_hosts_that_answer_as_one_are_refused():
    with pytest.raises(SpecErrors, match="is already gpu01"):
        drafted(host(1, nic(0)), host(2, nic(0)))


def test_addresses_that_are_seen_are_a_hint_for_the_pattern():
    netdevs = [replace(nic(n).netdevs[0], addresses=(f"10.10.{n}.1/24", "fe80::1/64")) for n in (0, 1)]
    result = drafted(host(1, *(replace(nic(n), netdevs=(netdevs[n],)) for n in (0, 1))))
    assert "# addressing: {ipv4: ...}   # gpu01 has 10.10.0.1/24, 10.10.1.1/24\n" in result.fabric


def bonded(port, name="bond0", card=0, number=1):
    """One port of a card; the second has no RDMA device while the two are a RoCE LAG. Without a name: no bond."""
    found = nic(port, host=number, serial=f"X{number}{card}", pci=f"0000:{card + 1}8:00.{port % 2}")
    netdev = replace(found.netdevs[0], uppers=(Upper(name, 9000, True, ()),) if name else ())
    return replace(found, netdevs=(netdev,), rdma=() if name and port % 2 else found.rdma)


def test_two_bonded_ports_of_a_card_are_drafted_as_a_bond():
    result = drafted(host(1, bonded(0), bonded(1), nic(5)))
    assert "- {network: roce-400g, rail: 0-1, bond: {name: bond0}}" in result.fabric
    assert "- {network: roce-400g, rail: 2}" in result.fabric
    want = compiled(completed(result.fabric), result.lock)["gpu01"]["roce"]
    assert [port.bond.name if port.bond else None for port in want.ports] == ["bond0", "bond0", None]


def test_other_bonds_are_not_drafted():
    for ports in ((bonded(0), bonded(1, card=1)), (bonded(0), nic(5)), (bonded(0, "a b"), bonded(1, "a b"))):
        assert "bond:" not in drafted(host(1, *ports)).fabric


def test_hosts_with_and_without_a_bond_are_of_two_kinds():
    plain = [bonded(port, name="", number=2) for port in (0, 1)]
    text = drafted(host(1, bonded(0), bonded(1)), host(2, *plain)).fabric
    assert text.count("bond: {name: bond0}") == 1
    assert "gpus-1-ports-2-2" in text
