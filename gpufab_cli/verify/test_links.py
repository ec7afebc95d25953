"""Ports that carry no RoCE: the pinned device, its link up at the declared speed."""

import re

import pytest

from gpufab_cli.verify.expected import Link
from gpufab_cli.verify.reading import Reading, UnreadableError

pytestmark = pytest.mark.wishes("links")


def fields(link: Link, reading: Reading) -> tuple[str, str, str]:
    """Identity, state and speed of the port at the link's PCI address."""
    name, layer = ("hcas", "InfiniBand") if link.infiniband else ("interfaces", "Ethernet")
    rows = [line.split("\t") for line in reading.section(name).require(name).splitlines()]
    found = [row[1:] for row in rows if row[0] == link.pci]
    assert found, f"no {layer} port at {link.pci}"
    if not link.infiniband:
        return found[0][0], found[0][1], found[0][2]
    guid, found_layer, state, rate = found[0]
    assert found_layer == layer, f"{link.pci} is {found_layer}"
    return guid, state, rate


@pytest.mark.manages("identity")
def test_pinned(link: Link, reading: Reading) -> None:
    """The port that the lock holds is at its PCI address."""
    found = re.sub("[^0-9a-f]", "", fields(link, reading)[0])
    wanted = (link.identity or "").replace(":", "")
    assert found == wanted, f"{found} at {link.pci}, the lock holds {wanted}"


def test_up(link: Link, reading: Reading) -> None:
    """The link is up."""
    state = fields(link, reading)[1]
    assert state == ("4: ACTIVE" if link.infiniband else "up"), f"the port is {state}"


@pytest.mark.manages("speed_gbps")
def test_speed(link: Link, reading: Reading) -> None:
    """The link runs at the declared speed: Gb/s of InfiniBand, Mb/s of others."""
    text = fields(link, reading)[2]
    match = re.match(r"[0-9]+(?:\.[0-9]+)?", text)
    if match is None:
        raise UnreadableError(f"speed: {text or 'none is told'}")
    speed = float(match[0]) / (1 if link.infiniband else 1000)
    assert speed == link.speed_gbps, f"{speed:g} Gb/s, {link.speed_gbps} is declared"
