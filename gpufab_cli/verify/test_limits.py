"""Locked memory: of a fresh login, and of the services that start jobs as they run and as they start next."""

from collections.abc import Iterator

import pytest

from gpufab_cli.verify.compare import compare, settled
from gpufab_cli.verify.expected import Node
from gpufab_cli.verify.reading import Reading, UnreadableError, number

pytestmark = pytest.mark.wishes("limits")
UNLIMITED = "unlimited"
BYTES = {"M": 1024**2, "G": 1024**3}


def wanted(node: Node) -> str:
    """The limit in bytes, or unlimited."""
    size: str = node.wishes["limits"]["memlock"]
    return size if size == UNLIMITED else str(int(size[:-1]) * BYTES[size[-1]])


def shown(pair: list[str]) -> str:
    """A soft limit and the hard one, for a message."""
    return " of ".join(dict.fromkeys(pair))


def test_login(node: Node, reading: Reading) -> None:
    """This very login, soft and hard; the shell tells KiB."""
    found = reading.section("memlock/login").require("ulimit -l").split()
    told = [UNLIMITED if value == UNLIMITED else str(number(value, "ulimit -l") * 1024) for value in found]
    if len(told) != 2:  # noqa: PLR2004 (soft and hard)
        raise UnreadableError("ulimit -l: could not be read")
    compare(told == [wanted(node)] * 2, f"a login may lock {shown(told)}, wanted {wanted(node)}")


def services(node: Node, reading: Reading) -> Iterator[tuple[str, dict[str, str]]]:
    """The services that the node has, each with its unit's properties."""
    for name in node.wishes["limits"]["services"]:
        text = reading.section(f"memlock/unit/{name}").require("systemctl show")
        shows = dict(line.partition("=")[::2] for line in text.splitlines())
        if not {"LoadState", "MainPID", "LimitMEMLOCK"} <= set(shows):
            raise UnreadableError(f"systemctl show {name}: printed what no known release prints")
        if shows["LoadState"] == "loaded":
            yield name, shows
        elif shows["LoadState"]:
            settled(f"{name} is {shows['LoadState']}")


@pytest.mark.wishes("limits", "services")
def test_services_now(node: Node, reading: Reading) -> None:
    """What runs, soft and hard."""
    for name, shows in services(node, reading):
        if shows["MainPID"] == "0":
            settled(f"{name} does not run")
            continue
        found = reading.section(f"memlock/now/{name}").words("prlimit").split()
        compare(found == [wanted(node)] * 2, f"{name} may lock {shown(found)}, wanted {wanted(node)}")


@pytest.mark.wishes("limits", "services")
def test_services_next(node: Node, reading: Reading) -> None:
    """What systemd will start."""
    for name, shows in services(node, reading):
        found = shows["LimitMEMLOCK"]
        told = UNLIMITED if found in ("infinity", str(2**64 - 1)) else found
        compare(told == wanted(node), f"{name} would start with {told}, wanted {wanted(node)}")
