"""MPI goes over UCX, and UCX over the rails in the class that the fabric declares."""

import pytest

from gpufab_cli.verify import parsers
from gpufab_cli.verify.expected import Node
from gpufab_cli.verify.reading import Reading

pytestmark = pytest.mark.wishes("mpi")
ECN_BITS = 2


def has_ucx(reading: Reading) -> bool:
    """Whether there is UCX in a place where packages put it."""
    return "libucp.so.0" in reading.section("mpi/libucp").text


def ucx(reading: Reading) -> dict[str, str]:
    """The file as UCX reads it: the last line about a name counts."""
    return parsers.settings(reading.section("mpi/ucx").require("/etc/ucx/ucx.conf"), first=False)


def test_ucx_devices(node: Node, reading: Reading) -> None:
    """Where there is UCX, it is told exactly the rails' devices."""
    if has_ucx(reading):
        names = parsers.rail_devices(reading.section("names").text, node.wishes["mpi"]["rails"])
        wanted = ",".join(f"{name}:1" for name in names)
        found = ucx(reading).get("UCX_NET_DEVICES", "")
        assert found == wanted, f"UCX_NET_DEVICES is {found or 'not set'}, wanted {wanted}"


@pytest.mark.wishes("mpi", "roce")
def test_ucx_class(node: Node, reading: Reading) -> None:
    """Its traffic has the DSCP of the declared class."""
    if has_ucx(reading):
        wanted = node.wishes["mpi"]["roce"]["traffic_class"]
        found = ucx(reading).get("UCX_IB_TRAFFIC_CLASS", "")
        assert found.isdigit(), f"UCX_IB_TRAFFIC_CLASS is {found or 'not set'}, wanted {wanted}"
        assert int(found) >> ECN_BITS == wanted >> ECN_BITS, f"UCX_IB_TRAFFIC_CLASS is {found}, wanted {wanted}"


def test_mpi_transport(reading: Reading) -> None:
    """Every Open MPI uses UCX where there is UCX."""
    for line in reading.section("mpi/pml").text.splitlines() if has_ucx(reading) else ():
        path, _, pml = line.partition(" ")
        assert pml == "ucx", f"{path}: pml is {pml or 'not set'}, wanted ucx"


def test_bind_program(reading: Reading) -> None:
    """The program that binds ranks runs."""
    text = reading.section("mpi/bind").require("gpufab-bind")
    assert "--local-rank" in text, "gpufab-bind does not say how it is used"
