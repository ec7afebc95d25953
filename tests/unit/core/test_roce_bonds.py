"""The bond that makes one RoCE LAG of two ports: what sysfs shows of it, and what is said of it."""

from dataclasses import replace

import pytest

from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.devices import NET, Netdev, Upper
from gpufab_cli.module_utils.roce import bonds
from gpufab_cli.module_utils.roce.plan import plan
from gpufab_cli.module_utils.roce.seen import BondSeen
from gpufab_cli.module_utils.roce.want import BondWant
from tests.fakes import FakeHost

from .roce_node import OTHER, PCI
from .test_roce_findings import BOND, BOND_RDMA, bonded

PORT = Netdev("ens1", "02:00:00:00:00:01", 9000, "up", 100_000, (), (), (BOND,))
MODE, LINK = f"{NET}/bond0/bonding/mode", f"{NET}/ens1/bonding_slave/mii_status"
ACTIVE, OWN = f"{NET}/bond0/bonding/ad_aggregator", f"{NET}/ens1/bonding_slave/ad_aggregator_id"
LACP = {MODE: "802.3ad 4\n", LINK: "up\n", ACTIVE: "1\n", OWN: "1\n"}
SOUND = BondSeen("bond0", "802.3ad", "up", joined=True)


@pytest.mark.parametrize(
    ("files", "seen"),
    [
        (LACP, SOUND),
        ({**LACP, LINK: "going down\n"}, replace(SOUND, link="going down")),
        ({**LACP, OWN: "2\n"}, replace(SOUND, joined=False)),
        ({MODE: "active-backup 1\n", LINK: "up\n", OWN: "N/A\n"}, BondSeen("bond0", "active-backup", "up", ABSENT)),
        ({MODE: "balance-xor 2\n", LINK: "down\n", ACTIVE: "\n"}, BondSeen("bond0", "balance-xor", "down", ABSENT)),
    ],
)
def test_what_sysfs_shows(files, seen):
    assert bonds.read(FakeHost(files), PORT) == seen


def test_a_port_in_no_bond():
    vlan = Upper("ens1.7", 9000, False, ())
    assert bonds.read(FakeHost(LACP), replace(PORT, uppers=(vlan,))) is ABSENT


@pytest.mark.parametrize("path", [MODE, LINK, ACTIVE, OWN])
def test_what_cannot_be_read_is_unknown(path):
    host = FakeHost(LACP)
    host.unreadable = {path: "Input/output error"}
    seen = bonds.read(host, PORT)
    assert [isinstance(value, Unknown) for value in (seen.mode, seen.link, seen.joined)].count(True) == 1


def said(seen, mode="802.3ad", change=None):
    """What is said of the second port, of a bond otherwise sound."""
    snapshot, want = bonded()
    ports = tuple(replace(port, bond=BondWant("bond0", mode)) for port in want.ports)
    roce = snapshot.seen["roce"]
    found = {PCI: replace(roce.ports[PCI], bond=SOUND), OTHER: replace(roce.ports[OTHER], bond=seen)}
    devices = snapshot.devices if change is None else change(snapshot.devices)
    snapshot = replace(snapshot, devices=devices, seen={"roce": replace(roce, ports=found)})
    found = plan(snapshot, replace(want, ports=ports)).findings
    return [(finding.code, finding.path[0], finding.evidence, finding.unknown) for finding in found]


@pytest.mark.parametrize("mode", ["802.3ad", None])
def test_nothing_of_a_bond_as_declared(mode):
    assert said(SOUND, mode) == []


@pytest.mark.parametrize(
    ("seen", "words", "unknown"),
    [
        (ABSENT, "ens18np1 is in no bond, the fabric wants it in bond0", False),
        (replace(SOUND, name="bond1"), "ens18np1 is in bond1, the fabric wants it in bond0", False),
        (replace(SOUND, mode="balance-rr"), "bond0 is balance-rr, the fabric wants 802.3ad", False),
        (replace(SOUND, link="down"), "bond0 takes the link of ens18np1 for down", False),
        (replace(SOUND, joined=False), "ens18np1 carries nothing of bond0: it is not in the active aggregator", False),
        (replace(SOUND, mode=Unknown("mode: EIO")), "mode: EIO", True),
        (replace(SOUND, link=Unknown("link: EIO")), "link: EIO", True),
        (replace(SOUND, joined=Unknown("id: EIO")), "id: EIO", True),
        (None, "not looked at: the snapshot was taken for another wish", True),
    ],
)
def test_what_is_otherwise(seen, words, unknown):
    assert said(seen) == [("roce.bond", OTHER, words, unknown)]


def test_two_rdma_devices_are_no_lag():
    def parted(devices):
        first, second = devices.nics
        return replace(devices, nics=(first, replace(second, rdma=(replace(BOND_RDMA[0], name="mlx5_1"),))))

    words = "bond0 has RDMA devices mlx5_1, mlx5_bond_0: it is no RoCE LAG"
    assert [row for row in said(SOUND, change=parted) if row[0] == "roce.bond"] == [
        ("roce.bond", PCI, words, False),
        ("roce.bond", OTHER, words, False),
    ]


def test_a_fabric_that_names_no_bond_is_not_told_of_one():
    assert plan(*bonded()).clean
