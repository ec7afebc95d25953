"""NCCL is told the rails by their names on this node, and the class that the fabric declares."""

import re

import pytest

from gpufab_cli.verify import nccl_releases, parsers
from gpufab_cli.verify.compare import compare
from gpufab_cli.verify.expected import Node
from gpufab_cli.verify.reading import Reading, UnreadableError

pytestmark = pytest.mark.wishes("nccl_env")
CONF = "/etc/nccl.conf"
ECN_BITS = 2
LIBRARY = re.compile(r"^\d+\.\d+\.\d+$", re.MULTILINE)  # and no copy that somebody has kept of one


def told(reading: Reading) -> dict[str, str]:
    """The file as NCCL reads it: of two lines about a name the first counts."""
    return parsers.settings(reading.section("nccl/conf").require(CONF), first=True)


def test_nccl_devices(node: Node, reading: Reading) -> None:
    """Exactly the rails' devices, in the order of rails, each once."""
    names = parsers.rail_devices(reading.section("names").lines("RDMA devices"), node.wishes["nccl_env"]["rails"])
    wanted = "=" + ",".join(f"{name}:1" for name in names)
    found = told(reading).get("NCCL_IB_HCA", "")
    compare(found == wanted, f"NCCL_IB_HCA is {found or 'not set'}, wanted {wanted}")


@pytest.mark.wishes("nccl_env", "roce")
def test_nccl_class(node: Node, reading: Reading) -> None:
    """NCCL's traffic has the DSCP of the declared class."""
    wanted = node.wishes["nccl_env"]["roce"]["traffic_class"]
    found = told(reading).get("NCCL_IB_TC", "")
    compare(found.isdigit(), f"NCCL_IB_TC is {found or 'not set'}, wanted {wanted}")
    compare(int(found) >> ECN_BITS == wanted >> ECN_BITS, f"NCCL_IB_TC is {found}, wanted {wanted}")


@pytest.mark.wishes("nccl_env", "variables")
def test_nccl_variables(node: Node, reading: Reading) -> None:
    """Each declared variable has its value, those aside that the oldest NCCL there does not know."""
    found, wish = told(reading), node.wishes["nccl_env"]
    for name, value in wish["variables"].items():
        if name in found:
            compare(found[name] == value, f"{name} is {found[name]}, wanted {value}")
            continue
        oldest = min(map(nccl_releases.version, releases(wish.get("release"), reading)), default=())
        known = name not in nccl_releases.SINCE or nccl_releases.SINCE[name] <= oldest
        if not known and not oldest:
            raise UnreadableError(f"{name} is not set, and no NCCL is there to know it or not")
        compare(not known, f"{name} is not set, wanted {value}")


def releases(declared: str | None, reading: Reading) -> list[str]:
    """The releases of NCCL that may read the file: the declared one, or those that are there."""
    return [declared] if declared else LIBRARY.findall("\n".join(reading.section("nccl/libraries").lines("NCCL")))


@pytest.mark.wishes("nccl_env", "socket_interfaces")
def test_nccl_sockets(node: Node, reading: Reading) -> None:
    """Exactly the declared interfaces."""
    wanted = "=" + ",".join(node.wishes["nccl_env"]["socket_interfaces"])
    found = told(reading).get("NCCL_SOCKET_IFNAME", "")
    compare(found == wanted, f"NCCL_SOCKET_IFNAME is {found or 'not set'}, wanted {wanted}")


@pytest.mark.wishes("nccl_env", "containers")
def test_nccl_containers(node: Node, reading: Reading) -> None:
    """Containers are told the same; of the task prolog what it prints counts."""
    here = told(reading)
    for kind in node.wishes["nccl_env"]["containers"]:
        text = reading.section(f"nccl/{kind}").require(kind).replace("export ", "")
        there = parsers.settings(text, first=True)
        for name in ("NCCL_IB_HCA", "NCCL_IB_TC"):
            found, wanted = there.get(name, "not set"), here.get(name, "none")
            if name in there or name in here:
                compare(found == wanted, f"{kind}: {name} is {found}, {CONF} has {wanted}")
