"""Each check of the ports that carry no RoCE, against what read.sh prints of them."""

import pytest

from gpufab_cli.verify import test_links as links
from gpufab_cli.verify.expected import Link, expected
from gpufab_cli.verify.reading import Reading, Section, UnreadableError

PCI = "0000:18:00.0"
IB = Link("gpu01", "compute/0", PCI, True, "a0:88:c2:03:00:01:4a:00", 400)
ETH = Link("gpu01", "management/0", PCI, False, "02:00:00:00:01:00", 10)
HCA = "\t".join([PCI, "a088:c203:0001:4a00", "InfiniBand", "4: ACTIVE", "400 Gb/sec (4X NDR)"])
INTERFACE = "\t".join([PCI, "02:00:00:00:01:00", "up", "10000"])
OTHER = "0000:99:00.0\t"


def reading(hcas=HCA, interfaces=INTERFACE):
    found = {"hcas": hcas, "interfaces": interfaces}
    return Reading({name: Section(name, "0", text) for name, text in found.items() if text is not None})


@pytest.mark.parametrize("check", [links.test_pinned, links.test_up, links.test_speed])
@pytest.mark.parametrize("link", [IB, ETH], ids=str)
def test_right_ports_pass(check, link):
    check(link, reading())


@pytest.mark.parametrize(
    ("check", "link", "printed", "words"),
    [
        (links.test_pinned, IB, {"hcas": "none"}, "no InfiniBand port at 0000:18:00.0"),
        (links.test_pinned, IB, {"hcas": HCA.replace(f"{PCI}\t", OTHER)}, "no InfiniBand port"),
        (links.test_pinned, IB, {"hcas": HCA.replace("4a00", "4a08")}, "a088c20300014a08 at 0000:18:00.0"),
        (links.test_pinned, IB, {"hcas": HCA.replace("InfiniBand", "Ethernet")}, "is Ethernet"),
        (links.test_pinned, ETH, {"interfaces": INTERFACE.replace("01:00\t", "01:09\t")}, "020000000109"),
        (links.test_up, IB, {"hcas": HCA.replace("4: ACTIVE", "2: INIT")}, "the port is 2: INIT"),
        (links.test_up, ETH, {"interfaces": INTERFACE.replace("up", "down")}, "the port is down"),
        (links.test_speed, IB, {"hcas": HCA.replace("400 Gb", "100 Gb")}, "100 Gb/s, 400 is declared"),
        (links.test_speed, ETH, {"interfaces": INTERFACE.replace("10000", "1000")}, "1 Gb/s, 10 is declared"),
    ],
)
def test_a_wrong_port_fails(check, link, printed, words):
    with pytest.raises(AssertionError, match=words):
        check(link, reading(**printed))


@pytest.mark.parametrize(
    ("check", "link", "printed"),
    [
        (links.test_up, IB, {"hcas": None}),
        (links.test_up, IB, {"hcas": ""}),
        (links.test_up, IB, {"hcas": HCA.replace("4: ACTIVE", "?")}),
        (links.test_pinned, ETH, {"interfaces": INTERFACE.replace("02:00:00:00:01:00", "?")}),
        (links.test_speed, IB, {"hcas": HCA.replace("400 Gb/sec (4X NDR)", "")}),
        (links.test_speed, ETH, {"interfaces": INTERFACE.replace("10000", "")}),
        (links.test_speed, ETH, {"interfaces": INTERFACE.replace("10000", "-1")}),
    ],
)
def test_what_is_not_told_is_unknown(check, link, printed):
    with pytest.raises(UnreadableError):
        check(link, reading(**printed))


def test_the_links_of_a_fabric_are_expected(repository):
    (node,) = expected(repository / "inventory" / "inference-100g" / "fabric.yml", "inf01")
    assert node.links == (Link("inf01", "management/0", "0000:04:00.0", False, "02:4c:7a:30:01:10", 10),)
    (node,) = expected(repository / "inventory" / "infiniband-ndr" / "fabric.yml", "gpu001")
    assert [link.rail for link in node.links] == [f"compute/{rail}" for rail in range(8)]
    assert node.links[0].identity == "a0:88:c2:03:00:01:4a:00"
