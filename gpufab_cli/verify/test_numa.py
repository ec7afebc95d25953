"""Interrupts, memory and PCI Express: what was declared is what the kernel and the devices have."""

import ipaddress
from itertools import combinations

import pytest

from gpufab_cli.verify import pci
from gpufab_cli.verify.expected import Node
from gpufab_cli.verify.reading import Reading, UnreadableError

KIB = {"K": 1, "M": 1024, "G": 1024 * 1024}
ARP = ("arp_ignore", "arp_announce", "rp_filter")


def _ports(node: Node) -> list[str]:
    return [port["pci"] for port in node.wishes["numa"]["ports"]]


def _cpus(text: str) -> set[int]:
    runs = [part.partition("-") for part in text.split(",") if part]
    return {cpu for low, _, high in runs for cpu in range(int(low), int(high or low) + 1)}


@pytest.mark.wishes("numa", "irq")
def test_interrupts_are_local(node: Node, reading: Reading) -> None:
    """Every interrupt of a port that can be placed is taken by CPUs that the kernel calls local to the port."""
    managed = reading.section("numa/managed").text
    rows = pci.rows(reading, "interrupts")
    silent = [address for address in _ports(node) if address not in {row[0] for row in rows}]
    if silent:
        raise UnreadableError(f"the kernel shows no interrupt of {silent[0]}")
    for address, number, local, effective in rows:
        if address in _ports(node) and local and f'"{address} {number}"' not in managed:
            assert _cpus(effective) <= _cpus(local), f"{address}: interrupt {number} is on CPU {effective}, not {local}"


def _is(reading: Reading, name: str, wanted: object) -> None:
    found = reading.section(f"numa/{name}").require(name).strip()
    assert found == str(wanted), f"{name} is {found}, wanted {wanted}"


@pytest.mark.wishes("numa", "nodes")
def test_nodes(node: Node, reading: Reading) -> None:
    """So many NUMA nodes have CPUs."""
    found = [name for name, cpus in pci.rows(reading, "nodes") if cpus]
    wanted = node.wishes["numa"]["nodes"]
    assert len(found) == wanted, f"{len(found)} NUMA nodes have CPUs, wanted {wanted}"


@pytest.mark.wishes("numa", "balancing")
def test_balancing(node: Node, reading: Reading) -> None:
    """The kernel moves pages, or leaves them, as declared; one that cannot leaves them."""
    wanted = node.wishes["numa"]["balancing"]
    if reading.section("numa/numa_balancing").code != "absent" or wanted:
        _is(reading, "numa_balancing", int(wanted))


@pytest.mark.wishes("numa", "zone_reclaim")
def test_zone_reclaim(node: Node, reading: Reading) -> None:
    """vm.zone_reclaim_mode is as declared; a kernel that has none reclaims nothing."""
    wanted = node.wishes["numa"]["zone_reclaim"]
    if reading.section("numa/zone_reclaim_mode").code != "absent" or wanted:
        _is(reading, "zone_reclaim_mode", wanted)


@pytest.mark.wishes("numa", "transparent_hugepages")
def test_transparent_hugepages(node: Node, reading: Reading) -> None:
    """The word in brackets is the one declared."""
    wanted = node.wishes["numa"]["transparent_hugepages"]
    found = reading.section("numa/transparent_hugepage").require("transparent_hugepage")
    assert f"[{wanted}]" in found, f"{found.strip()}, wanted {wanted}"


@pytest.mark.wishes("numa", "hugepages")
def test_hugepages(node: Node, reading: Reading) -> None:
    """Each NUMA node that has CPUs and memory has the huge pages."""
    for place, kib, count, cpus, memory in pci.rows(reading, "hugepages"):
        for size, wanted in node.wishes["numa"]["hugepages"].items():
            if int(kib) == int(size[:-1]) * KIB[size[-1]] and cpus and memory != "0":
                assert int(count) == wanted, f"{place} has {count} pages of {size}, wanted {wanted}"


@pytest.mark.wishes("numa", "shared_subnet")
def test_shared_subnets(node: Node, reading: Reading) -> None:
    """Where interfaces of ports share a subnet, the kernel acts by the declared values: the larger of its two."""
    values = {name: [int(text) for text in rest] for name, *rest in pci.rows(reading, "arp")}
    networks = [(name, ipaddress.ip_interface(text).network) for name, text in pci.rows(reading, "addresses")]
    pairs = [(one, two) for one, two in combinations(networks, 2) if one[0] != two[0] and one[1].overlaps(two[1])]
    shared = {name for pair in pairs for name, _ in pair}
    own = {name for address, name in pci.rows(reading, "netdevs") if address in _ports(node)}
    for name in sorted(shared & own):
        for index, setting in enumerate(ARP):
            wanted = node.wishes["numa"]["shared_subnet"].get(setting)
            found = max(values[name][index], values["all"][index])
            assert wanted in (None, found), f"{name}: {setting} acts as {found}, wanted {wanted}"


def _functions(reading: Reading) -> dict[str, pci.Function]:
    return pci.functions(reading.section("numa/lspci").require("lspci"))


@pytest.mark.wishes("numa", "max_read_request")
def test_max_read_request(node: Node, reading: Reading) -> None:
    """Each port reads in the declared portions."""
    found, wanted = _functions(reading), node.wishes["numa"]["max_read_request"]
    for address in _ports(node):
        size = found.get(address, pci.Function()).read_request
        if size is None:
            raise UnreadableError(f"lspci shows no MaxReadReq of {address}")
        assert size == wanted, f"{address}: MaxReadReq is {size} bytes, wanted {wanted}"


@pytest.mark.wishes("numa", "use")
def test_acs(node: Node, reading: Reading) -> None:
    """On bare metal no switch turns traffic between GPUs and ports away; for guests every bridge isolates."""
    bare = node.wishes["numa"].get("use") == "bare-metal"
    found = _functions(reading)
    for address in sorted(pci.counting(node, reading)):
        bridge = found.get(address)
        if bridge is None or (bridge.acs is None and not reading.is_root):
            raise UnreadableError(f"lspci shows nothing of {address}")
        assert bare or bridge.acs is not None or not bridge.isolates, f"{address} has no ACS: all below it is one group"
        on = bridge.acs if bridge.acs is not None else frozenset()
        wrong = on & set(pci.REDIRECTS) if bare else (bridge.able & set(pci.ISOLATES)) - on
        assert not wrong, f"{address}: {', '.join(sorted(wrong))} {'on' if bare else 'off'}"
