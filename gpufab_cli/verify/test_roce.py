"""The RoCE ports: the right device, up, and every part of the lossless class in place."""

import pytest

from gpufab_cli.verify import parsers
from gpufab_cli.verify.compare import compare
from gpufab_cli.verify.expected import Port
from gpufab_cli.verify.port import PortReading
from gpufab_cli.verify.reading import UnreadableError

pytestmark = pytest.mark.wishes("roce")
DSCPS = 64
ETS = ("prio_tc", "tc_tsa", "tc_bw")


def listed(priorities: tuple[int, ...]) -> str:
    """Priorities for a message."""
    return ", ".join(map(str, priorities)) or "none"


def test_device(port: Port, seen: PortReading) -> None:
    """The device that the lock holds is at its PCI address."""
    names = seen.names()
    compare(bool(names), f"no netdev at {port.pci}")
    mac = parsers.link(seen.text("link", "ip link"))[0]
    compare(port.mac in (None, mac), f"MAC {mac} at {port.pci}, the lock holds {port.mac}")


def test_link(seen: PortReading) -> None:
    """The link is up."""
    state = parsers.link(seen.text("link", "ip link"))[2]
    compare(state == "UP", f"{seen.netdev} is {state}")


@pytest.mark.manages("mtu")
def test_mtu(port: Port, seen: PortReading) -> None:
    """The MTU is the fabric's."""
    mtu = parsers.link(seen.text("link", "ip link"))[1]
    compare(mtu == port.mtu, f"MTU {mtu}, the fabric wants {port.mtu}")


def test_rdma(seen: PortReading) -> None:
    """There is one RDMA device on the port, and it is active."""
    links = seen.rdma_links()
    compare(len(links) == 1, f"{len(links)} RDMA devices on {seen.netdev}, not one")
    name, state, physical = links[0]
    compare((state, physical) == ("ACTIVE", "LINK_UP"), f"{name} is {state}, {physical}")


@pytest.mark.manages("bond")
def test_bond(port: Port, seen: PortReading) -> None:
    """The port is in its bond, which is of the declared mode and takes the port's link for up."""
    section, (name, mode) = seen.section("bond"), port.wanted("bond")
    compare(section.code != "absent", f"{seen.netdev} is in no bond, wanted in {name}")
    found, found_mode, link = parsers.bond(section.require("bonding"))
    compare(found == name, f"{seen.netdev} is in {found}, wanted in {name}")
    compare(mode in (None, found_mode), f"{name} is {found_mode}, wanted {mode}")
    compare(link == "up", f"{name} takes the link of {seen.netdev} for {link}")


@pytest.mark.manages("address")
def test_gid(port: Port, seen: PortReading) -> None:
    """The port's address is there as a RoCE v2 GID, which is what queue pairs are made with."""
    found = list(parsers.v2_gids(seen.rdma_section("gids").lines("GID table")))
    compare(port.address in found, f"no RoCE v2 GID {port.address}, only {', '.join(map(str, found)) or 'none'}")


def test_pause(port: Port, seen: PortReading) -> None:
    """Global pause is off where PFC is wanted: the two overwrite one another."""
    rx, tx = parsers.pause(seen.text("pause", "ethtool -a"))
    on = [name for name, flag in (("rx", rx), ("tx", tx)) if flag]
    compare(not (on and port.wanted("pfc")), f"global pause is on: {', '.join(on)}")


def test_dscp_map(port: Port, seen: PortReading) -> None:
    """The port trusts DSCP (it has DSCP entries), and each of the 64 has its priority and no other."""
    found = seen.dscp()
    compare(bool(found), "no DSCP is mapped: the port trusts 802.1p")
    wanted = {dscp: (priority,) for dscp, priority in enumerate(port.wanted("dscp_priority"))}
    compare(len(wanted) == DSCPS, f"the fabric maps {len(wanted)} DSCPs")
    wrong = [dscp for dscp in sorted(wanted.keys() | found.keys()) if found.get(dscp) != wanted.get(dscp)]
    first = wrong[0] if wrong else 0
    what = f"DSCP {first} has priority {listed(found.get(first, ()))}, wanted {listed(wanted.get(first, ()))}"
    compare(not wrong, what + (f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""))


def test_pfc(port: Port, seen: PortReading) -> None:
    """PFC is on for the lossless priorities and for no other."""
    found, wanted = seen.pfc(), tuple(port.wanted("pfc"))
    compare(found == wanted, f"PFC on for priority {listed(found)}, wanted {listed(wanted)}")


@pytest.mark.manages("tc_bw")
def test_ets(port: Port, seen: PortReading) -> None:
    """Traffic classes, their algorithms and their shares."""
    for name, have, want in zip(ETS, seen.ets(), map(port.wanted, ETS), strict=True):
        compare(have == tuple(want), f"{name} is {' '.join(map(str, have))}, wanted {' '.join(map(str, want))}")


@pytest.mark.manages("cable_m")
def test_cable(port: Port, seen: PortReading) -> None:
    """The cable length, from which the driver derives the headroom of lossless buffers."""
    found = seen.cable_m()
    compare(found == port.wanted("cable_m"), f"{found} m of cable, wanted {port.wanted('cable_m')}")


@pytest.mark.manages("prio_buffer")
def test_buffers(port: Port, seen: PortReading) -> None:
    """Which receive buffer each priority has, and the size of each."""
    for name, have in zip(("prio_buffer", "buffer_bytes"), seen.buffers(), strict=True):
        want = port.wanted(name)
        compare(have == tuple(want), f"{name} is {' '.join(map(str, have))}, wanted {' '.join(map(str, want))}")


@pytest.mark.manages("dcqcn")
def test_dcqcn(port: Port, seen: PortReading) -> None:
    """The DCQCN parameters that are managed."""
    wanted = {name: value for name, value in port.wanted("dcqcn").items() if value is not None}
    found = seen.dcqcn(sorted(wanted))
    wrong = [f"{name} {found[name]}, wanted {value}" for name, value in wanted.items() if found[name] != value]
    compare(not wrong, "; ".join(wrong))


@pytest.mark.manages("ecn")
def test_ecn(port: Port, seen: PortReading) -> None:
    """The port answers marked packets with CNPs, and its lossless priorities slow down on them; or neither."""
    wanted = set(port.wanted("ecn"))
    senders, reacting = seen.ecn()
    compare(bool(senders) == bool(wanted), f"CNPs are {'sent' if senders else 'not sent'}")
    wrong = wanted - set(reacting) if wanted else set(reacting)
    compare(not wrong, f"priority {listed(tuple(sorted(wrong)))} {'does not react' if wanted else 'reacts'} to CNPs")


@pytest.mark.manages("cnp_dscp")
def test_cnp(port: Port, seen: PortReading) -> None:
    """CNPs carry their own DSCP and priority."""
    found = seen.cnp()
    wanted = port.wanted("cnp_dscp"), port.wanted("cnp_priority")
    compare(found == wanted, f"CNPs have DSCP {found[0]} and priority {found[1]}, wanted {wanted[0]} and {wanted[1]}")


@pytest.mark.manages("traffic_class")
def test_traffic_class(port: Port, seen: PortReading) -> None:
    """Every queue pair is forced into the lossless class; the two ECN bits do not select it."""
    forced = seen.traffic_class()
    wanted = port.wanted("traffic_class")
    compare(forced is not None, f"no traffic class is forced, wanted {wanted}")
    found = forced or 0
    words = f"traffic class {found} (DSCP {found >> 2}), wanted {wanted} (DSCP {wanted >> 2})"
    compare(found >> 2 == wanted >> 2, words)


@pytest.mark.manages("rdma_cm_tos")
def test_rdma_cm(port: Port, seen: PortReading) -> None:
    """Connections made by RDMA-CM begin in the lossless class, as RoCE v2."""
    section, wanted = seen.rdma_section("rdma-cm"), port.wanted("rdma_cm_tos")
    if section.code == "unloaded":
        raise UnreadableError("rdma_cm is not loaded or configfs is not mounted")
    compare(section.code != "absent", "no defaults are set in configfs")
    tos, mode = parsers.rdma_cm(section.require("rdma_cm"))
    compare(tos >> 2 == wanted >> 2, f"ToS {tos} (DSCP {tos >> 2}), wanted {wanted} (DSCP {wanted >> 2})")
    compare(mode == port.wanted("rdma_cm_mode"), f"mode {mode}, wanted {port.wanted('rdma_cm_mode')}")
