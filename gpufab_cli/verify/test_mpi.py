"""MPI goes over UCX, and UCX over the rails in the class that the fabric declares."""

import pytest

from gpufab_cli.verify import parsers
from gpufab_cli.verify.compare import compare, settled
from gpufab_cli.verify.expected import Node
from gpufab_cli.verify.reading import Reading, UnreadableError

pytestmark = pytest.mark.wishes("mpi")
ECN_BITS = 2


def has_ucx(reading: Reading) -> bool:
    """Whether there is UCX in a place where packages put it; where there is none, nothing of it is to be compared."""
    found = reading.section("mpi/libucp").lines("UCX")
    if found and not any("libucp.so.0" in line for line in found):
        raise UnreadableError("UCX: the list of libraries is garbled")
    if not found:
        settled("there is no UCX")
    return bool(found)


def ucx(reading: Reading) -> dict[str, str]:
    """The file as UCX reads it: the last line about a name counts."""
    return parsers.settings(reading.section("mpi/ucx").require("/etc/ucx/ucx.conf"), first=False)


def test_ucx_devices(node: Node, reading: Reading) -> None:
    """Where there is UCX, it is told exactly the rails' devices."""
    if has_ucx(reading):
        names = parsers.rail_devices(reading.section("names").lines("RDMA devices"), node.wishes["mpi"]["rails"])
        wanted = ",".join(f"{name}:1" for name in names)
        found = ucx(reading).get("UCX_NET_DEVICES", "")
        compare(found == wanted, f"UCX_NET_DEVICES is {found or 'not set'}, wanted {wanted}")


@pytest.mark.wishes("mpi", "roce")
def test_ucx_class(node: Node, reading: Reading) -> None:
    """Its traffic has the DSCP of the declared class."""
    if has_ucx(reading):
        wanted = node.wishes["mpi"]["roce"]["traffic_class"]
        found = ucx(reading).get("UCX_IB_TRAFFIC_CLASS", "")
        compare(found.isdigit(), f"UCX_IB_TRAFFIC_CLASS is {found or 'not set'}, wanted {wanted}")
        compare(int(found) >> ECN_BITS == wanted >> ECN_BITS, f"UCX_IB_TRAFFIC_CLASS is {found}, wanted {wanted}")


def test_mpi_transport(reading: Reading) -> None:
    """Every Open MPI uses UCX where there is UCX."""
    if not has_ucx(reading):
        return
    found = reading.section("mpi/pml").lines("Open MPI")
    for line in found:
        path, _, pml = line.partition(" ")
        compare(pml == "ucx", f"{path}: pml is {pml or 'not set'}, wanted ucx")
    if not found:
        settled("there is no Open MPI")


def test_bind_program(reading: Reading) -> None:
    """The program that binds ranks runs."""
    text = reading.section("mpi/bind").require("gpufab-bind")
    compare("--local-rank" in text, "gpufab-bind does not say how it is used")
