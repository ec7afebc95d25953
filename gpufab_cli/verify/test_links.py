"""Ports that carry no RoCE: the pinned device, its link up at the declared speed."""

import re

import pytest

from gpufab_cli.verify.compare import compare
from gpufab_cli.verify.expected import Link
from gpufab_cli.verify.reading import Reading, UnreadableError, told

pytestmark = pytest.mark.wishes("links")


def fields(link: Link, reading: Reading) -> tuple[str, str, str]:
    """Identity, state and speed of the port at the link's PCI address."""
    name, layer, width = ("hcas", "InfiniBand", 5) if link.infiniband else ("interfaces", "Ethernet", 4)
    found = [row[1:] for row in reading.section(name).fields(name, width) if row[0] == link.pci]
    compare(bool(found), f"no {layer} port at {link.pci}")
    if not link.infiniband:
        return found[0][0], found[0][1], found[0][2]
    guid, found_layer, state, rate = found[0]
    compare(told(found_layer, f"link layer of {link.pci}") == layer, f"{link.pci} is {found_layer}")
    return guid, state, rate


@pytest.mark.manages("identity")
def test_pinned(link: Link, reading: Reading) -> None:
    """The port that the lock holds is at its PCI address."""
    found = re.sub("[^0-9a-f]", "", told(fields(link, reading)[0], f"identity of {link.pci}"))
    wanted = (link.identity or "").replace(":", "")
    compare(found == wanted, f"{found} at {link.pci}, the lock holds {wanted}")


def test_up(link: Link, reading: Reading) -> None:
    """The link is up."""
    state = told(fields(link, reading)[1], f"state of {link.pci}")
    compare(state == ("4: ACTIVE" if link.infiniband else "up"), f"the port is {state}")


@pytest.mark.manages("speed_gbps")
def test_speed(link: Link, reading: Reading) -> None:
    """The link runs at the declared speed: Gb/s of InfiniBand, Mb/s of others."""
    text = fields(link, reading)[2]
    match = re.match(r"[0-9]+(?:\.[0-9]+)?", text)
    if match is None:
        raise UnreadableError(f"speed: {text if text not in ('', '?') else 'none is told'}")
    speed = float(match[0]) / (1 if link.infiniband else 1000)
    compare(speed == link.speed_gbps, f"{speed:g} Gb/s, {link.speed_gbps} is declared")
