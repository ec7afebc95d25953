"""Two rails as one RoCE LAG: how it is written, what it must be, and which address it has."""

import pytest

from gpufab_cli.errors import GpufabError
from gpufab_cli.module_utils.roce.want import BondWant
from gpufab_cli.spec.addressing import port_address
from gpufab_cli.spec.lock import Lock, LockedHost, LockedPort
from gpufab_cli.spec.model import Rail
from tests.fabrics import compiled, refusals, spec

PORTS = "ports: [{network: compute, rail: 0-1}]"
BONDED = (PORTS, "ports: [{network: compute, rail: 0-1, bond: {name: bond0, mode: 802.3ad}}]")
ONE_SUBNET = ("qos: dcqcn}", 'qos: dcqcn, addressing: {ipv4: "10.1.0.{host}/24"}}')
EACH_ITS_OWN = ("qos: dcqcn}", 'qos: dcqcn, addressing: {ipv4: "10.1.{rail}.{host}/24"}}')


def lock(*ports):
    named = {f"compute/{rail}": LockedPort(pci=pci, serial=serial) for rail, (pci, serial) in enumerate(ports)}
    return Lock(hosts={f"gpu0{number}": LockedHost(ports=named) for number in (1, 2, 3)})


@pytest.mark.parametrize(
    ("bond", "told"),
    [
        ("{name: a name}", "profiles.box.ports[0].bond.name: 'a name' is not an interface name"),
        ("{name: bond0, mode: lacp}", "profiles.box.ports[0].bond.mode: "),
        ("{name: bond0, mode: balance-rr}", "profiles.box.ports[0].bond.mode: "),
        ("{mode: 802.3ad}", "profiles.box.ports[0].bond.name: missing"),
        ("{name: bond0, slaves: 2}", "profiles.box.ports[0].bond.slaves: unknown key"),
    ],
)
def test_how_it_is_written(bond, told):
    (refusal,) = refusals((PORTS, f"ports: [{{network: compute, rail: 0-1, bond: {bond}}}]"))
    assert refusal.startswith(told)


def test_ports_of_a_bond_share_its_address_and_two_rails_do_not():
    assert refusals(BONDED, ONE_SUBNET) == []
    assert "has the address of" in refusals(ONE_SUBNET)[0]
    fabric = spec(BONDED, EACH_ITS_OWN)
    addresses = {str(port_address(fabric, fabric.hosts[1], Rail("compute", rail))) for rail in (0, 1)}
    assert addresses == {"10.1.0.2/24"}


def test_a_bond_is_told_to_both_ports():
    want = compiled(spec(BONDED), lock(("0000:18:00.0", "X"), ("0000:18:00.1", "X")))["gpu01"]["roce"]
    assert [port.bond for port in want.ports] == [BondWant("bond0", "802.3ad")] * 2


@pytest.mark.parametrize(
    ("ports", "fits"),
    [
        ((("0000:18:00.0", None), ("0000:18:00.1", None)), True),
        ((("0000:18:00.0", None), ("0000:3b:00.0", None)), False),
        ((("0000:18:00.0", "X"), ("0000:3b:00.0", "X")), True),  # one card with two PCI slots
        ((("0000:18:00.0", "X"), ("0000:18:00.1", "Y")), False),
    ],
)
def test_both_ports_are_of_one_card(ports, fits):
    if fits:
        assert compiled(spec(BONDED), lock(*ports))
        return
    with pytest.raises(GpufabError, match=r"gpu01: compute/0 and compute/1 are of two cards"):
        compiled(spec(BONDED), lock(*ports))
