"""Ports that carry no RoCE: what is wrong with them is found, and nothing is ever planned."""

from dataclasses import replace

import pytest

from gpufab_cli.module_utils.change import Finding, Unknown
from gpufab_cli.module_utils.devices import Devices, Netdev, Nic, RdmaDevice
from gpufab_cli.module_utils.features import FEATURES
from gpufab_cli.module_utils.links.seen import LinksSeen
from gpufab_cli.module_utils.links.want import LinksWant, LinkWant
from gpufab_cli.module_utils.schema import decode, encode
from gpufab_cli.module_utils.snapshot import Snapshot

PCI = "0000:18:00.0"
HCA = RdmaDevice("ibp24s0", "a088:c203:0001:4a00", "InfiniBand", "ACTIVE", "400 Gb/sec (4X NDR)")
ROCE = RdmaDevice("rocep24s0", "0200:00ff:fe00:0001", "Ethernet", "ACTIVE", "400 Gb/sec (4X NDR)")
ETH = Netdev("eno1", "02:00:00:00:01:00", 1500, "up", 10_000, (), ())
NIC = Nic(PCI, "mlx5_core", "0x15b3", "0x1021", 0, False, "SN1", "MT_0000000838", "28.39.1002", (), (HCA,))
PLAIN = replace(NIC, driver="ixgbe", netdevs=(ETH,), rdma=())

IB = LinkWant("compute/0", PCI, "infiniband", guid="a0:88:c2:03:00:01:4a:00", serial="SN1", speed_gbps=400)
MANAGEMENT = LinkWant("management/0", PCI, "ethernet", mac="02:00:00:00:01:00", speed_gbps=10)


def plan(port, *nics):
    snapshot = Snapshot("boot", 0, Devices(nics), {"links": LinksSeen()})
    return FEATURES["links"].plan(snapshot, LinksWant((port,)))


def hca(**changes):
    return replace(NIC, rdma=(replace(HCA, **changes),))


def eth(**changes):
    return replace(PLAIN, netdevs=(replace(ETH, **changes),))


@pytest.mark.parametrize(
    ("port", "nic"),
    [
        (IB, NIC),
        (IB, replace(NIC, netdevs=(replace(ETH, name="ibp24s0", mac="00:00:10:29:fe:80", operstate="down"),))),
        (replace(IB, speed_gbps=None), hca(rate="100 Gb/sec (4X EDR)")),
        (replace(IB, guid=None, serial=None), NIC),
        (replace(IB, psid="MT_0000000838"), NIC),
        (replace(IB, psid="MT_0000000838"), replace(NIC, psid=Unknown("devlink is not installed"))),
        (MANAGEMENT, PLAIN),
        (MANAGEMENT, replace(PLAIN, rdma=(ROCE,))),
        (replace(MANAGEMENT, speed_gbps=None), eth(speed_mbps=Unknown("no speed"))),
    ],
    ids=[
        "as declared",
        "IPoIB down",
        "any speed",
        "nothing to tell it by",
        "the lock's firmware",
        "firmware that nobody tells",
        "Ethernet",
        "RoCE-capable",
        "no speed asked",
    ],
)
def test_a_right_port_has_nothing_to_be_said_of_it(port, nic):
    assert plan(port, nic).clean


@pytest.mark.parametrize(
    ("port", "nics", "code", "evidence"),
    [
        (IB, [], "device.missing", "nothing there"),
        (IB, [replace(NIC, rdma=())], "device.missing", "no netdev there: the driver is not loaded or has failed"),
        (IB, [replace(NIC, pci="0000:99:00.0")], "device.moved", "a0:88:c2:03:00:01:4a:00 is now at 0000:99:00.0"),
        (
            IB,
            [hca(node_guid="a088:c203:0001:4a08")],
            "device.replaced",
            "GUID a0:88:c2:03:00:01:4a:08, the lock holds a0:88:c2:03:00:01:4a:00",
        ),
        (
            replace(IB, psid="MT_0000000838"),
            [replace(NIC, psid="DEL0000000033")],
            "device.psid",
            "PSID DEL0000000033, the lock holds MT_0000000838",
        ),
        (IB, [replace(NIC, serial="SN2")], "device.replaced", "serial SN2, the lock holds SN1"),
        (IB, [replace(NIC, is_vf=True)], "device.ambiguous", "a VF"),
        (IB, [replace(NIC, nvswitch=True)], "device.management", "it manages the NVSwitches of the GPU baseboard"),
        (replace(IB, guid=None), [replace(NIC, rdma=(ROCE,))], "links.layer", "Ethernet, InfiniBand is declared"),
        (IB, [replace(NIC, netdevs=(ETH,), rdma=())], "links.layer", "no RDMA device, InfiniBand is declared"),
        (IB, [hca(state="INIT")], "links.down", "the port is INIT"),
        (IB, [hca(state="")], "links.down", "the port is in no known state"),
        (IB, [hca(rate="200 Gb/sec (4X HDR)")], "links.speed", "the link is at 200 Gb/s, 400 Gb/s is declared"),
        (IB, [hca(rate="2.5 Gb/sec (1X SDR)")], "links.speed", "the link is at 2.5 Gb/s, 400 Gb/s is declared"),
        (IB, [hca(rate="400")], "links.speed", "the link is at an unknown speed, 400 Gb/s is declared"),
        (MANAGEMENT, [replace(eth(), rdma=(HCA,))], "links.layer", "InfiniBand, Ethernet is declared"),
        (MANAGEMENT, [eth(mac="02:00:00:00:01:09")], "device.replaced", None),
        (MANAGEMENT, [eth(operstate="down")], "links.down", "the port is down"),
        (MANAGEMENT, [replace(PLAIN, netdevs=(ETH, ETH))], "links.down", "the port is in no known state"),
        (MANAGEMENT, [eth(speed_mbps=1000)], "links.speed", "the link is at 1 Gb/s, 10 Gb/s is declared"),
        (
            MANAGEMENT,
            [eth(speed_mbps=Unknown("x"))],
            "links.speed",
            "the link is at an unknown speed, 10 Gb/s is declared",
        ),
    ],
)
def test_a_wrong_port_is_one_finding(port, nics, code, evidence):
    found = plan(port, *nics)
    assert found.steps == ()
    (finding,) = found.findings
    assert (finding.code, finding.path) == (code, (PCI, port.rail))
    assert evidence in (None, finding.evidence)
    assert finding.unknown == any(word in finding.evidence for word in ("unknown speed", "no known state"))


def test_the_others_do_not_shift():
    ports = tuple(replace(IB, rail=f"compute/{n}", pci=f"0000:{n}8:00.0", guid=None, serial=None) for n in (1, 2, 3))
    nics = tuple(replace(NIC, pci=port.pci) for port in ports if port.rail != "compute/2")
    snapshot = Snapshot("boot", 0, Devices(nics), {"links": LinksSeen()})
    assert FEATURES["links"].plan(snapshot, LinksWant(ports)).findings == (
        Finding("device.missing", ("0000:28:00.0", "compute/2"), "nothing there"),
    )


def test_a_wish_goes_to_the_node_and_back():
    want = LinksWant((IB, MANAGEMENT))
    assert decode(LinksWant, encode(want)) == want
    assert FEATURES["links"].only(want, "0000:99:00.0") == LinksWant(())
