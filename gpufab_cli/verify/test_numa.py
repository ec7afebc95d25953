"""Interrupts, memory and PCI Express: what was declared is what the kernel and the devices have."""

import ipaddress
import re
from itertools import combinations

import pytest

from gpufab_cli.verify import parsers, pci
from gpufab_cli.verify.compare import compare, settled
from gpufab_cli.verify.expected import Node
from gpufab_cli.verify.reading import Reading, UnreadableError, number

KIB = {"K": 1, "M": 1024, "G": 1024 * 1024}
ARP = ("arp_ignore", "arp_announce", "rp_filter")


def _ports(node: Node) -> list[str]:
    return [port["pci"] for port in node.wishes["numa"]["ports"]]


@pytest.mark.wishes("numa", "irq")
@pytest.mark.wishes("numa", "ports")
def test_interrupts_are_local(node: Node, reading: Reading) -> None:
    """Every interrupt of a port that can be placed is taken by CPUs that the kernel calls local to the port."""
    managed, rows = _managed(reading), pci.rows(reading, "interrupts", 4)
    silent = [address for address in _ports(node) if address not in {row[0] for row in rows}]
    if silent:
        raise UnreadableError(f"the kernel shows no interrupt of {silent[0]}")
    for address, irq, local, effective in rows:
        if address not in _ports(node):
            continue
        near, taking = pci.cpus(local), pci.cpus(effective)
        if not near or f"{address} {irq}" in managed:
            settled(f"{address}: interrupt {irq} has no place of its own")
        else:
            compare(taking <= near, f"{address}: interrupt {irq} is on CPU {effective}, not {local}")


def _managed(reading: Reading) -> list[str]:
    """The interrupts that are known to be placed by the kernel, by address and number; without a note none is."""
    section = reading.section("numa/managed")
    try:
        found = [] if section.code == "absent" else parsers.parse_json(section.require("managed-irqs.json"))
    except ValueError as error:
        raise UnreadableError(f"managed-irqs.json: {error}") from error
    if not isinstance(found, list):
        raise UnreadableError("managed-irqs.json: no list")
    return [str(entry) for entry in found]


def _is(reading: Reading, name: str, wanted: object) -> None:
    found = reading.section(f"numa/{name}").words(name)
    compare(found == str(wanted), f"{name} is {found}, wanted {wanted}")


@pytest.mark.wishes("numa", "nodes")
def test_nodes(node: Node, reading: Reading) -> None:
    """So many NUMA nodes have CPUs."""
    found = [name for name, has_cpus, _ in pci.memory_nodes(reading) if has_cpus]
    wanted = node.wishes["numa"]["nodes"]
    if not found:
        raise UnreadableError("the kernel shows no NUMA node with CPUs")
    compare(len(found) == wanted, f"{len(found)} NUMA nodes have CPUs, wanted {wanted}")


@pytest.mark.wishes("numa", "balancing")
def test_balancing(node: Node, reading: Reading) -> None:
    """The kernel moves pages, or leaves them, as declared; one that cannot leaves them."""
    wanted = node.wishes["numa"]["balancing"]
    if reading.section("numa/numa_balancing").code == "absent" and not wanted:
        settled("this kernel cannot move pages")
    else:
        _is(reading, "numa_balancing", int(wanted))


@pytest.mark.wishes("numa", "zone_reclaim")
def test_zone_reclaim(node: Node, reading: Reading) -> None:
    """vm.zone_reclaim_mode is as declared; a kernel that has none reclaims nothing."""
    wanted = node.wishes["numa"]["zone_reclaim"]
    if reading.section("numa/zone_reclaim_mode").code == "absent" and not wanted:
        settled("this kernel reclaims nothing")
    else:
        _is(reading, "zone_reclaim_mode", wanted)


@pytest.mark.wishes("numa", "transparent_hugepages")
def test_transparent_hugepages(node: Node, reading: Reading) -> None:
    """The word in brackets is the one declared."""
    wanted = node.wishes["numa"]["transparent_hugepages"]
    found = reading.section("numa/transparent_hugepage").words("transparent_hugepage")
    if not re.search(r"\[\w+\]", found):
        raise UnreadableError(f"transparent_hugepage: {found}")
    compare(f"[{wanted}]" in found, f"{found}, wanted {wanted}")


@pytest.mark.wishes("numa", "hugepages")
def test_hugepages(node: Node, reading: Reading) -> None:
    """Each NUMA node that has CPUs and memory has the huge pages."""
    found = {(place, kib): count for place, kib, count in pci.rows(reading, "hugepages", 3)}
    for place, has_cpus, has_memory in pci.memory_nodes(reading):
        for size, wanted in node.wishes["numa"]["hugepages"].items() if has_cpus and has_memory else ():
            count = found.get((place, str(int(size[:-1]) * KIB[size[-1]])), "no")
            if count != "no":
                number(count, f"huge pages of {place}")
            compare(count == str(wanted), f"{place} has {count} pages of {size}, wanted {wanted}")


@pytest.mark.wishes("numa", "shared_subnet")
@pytest.mark.wishes("numa", "ports")
def test_shared_subnets(node: Node, reading: Reading) -> None:
    """Where interfaces of ports share a subnet, the kernel acts by the declared values: the larger of its two."""
    values = {name: rest for name, *rest in pci.rows(reading, "arp", 1 + len(ARP))}
    own = {name for address, name in pci.rows(reading, "netdevs", 2) if address in _ports(node)}
    silent = [name for name in ("all", *sorted(own)) if name not in values]
    if silent or not own:
        raise UnreadableError(f"the kernel shows no ARP settings of {silent[0] if silent else 'any port'}")
    shared = _sharing(reading) & own
    for name in sorted(shared):
        for index, setting in enumerate(ARP):
            wanted = node.wishes["numa"]["shared_subnet"].get(setting)
            found = max(number(values[place][index], f"{setting} of {place}") for place in (name, "all"))
            compare(wanted in (None, found), f"{name}: {setting} acts as {found}, wanted {wanted}")
    if not shared:
        settled("no interfaces of ports share a subnet")


def _sharing(reading: Reading) -> set[str]:
    """The interfaces that have an IPv4 subnet together with another, of ``ip -o -4 addr show``: there is always lo."""
    lines = [line.split() for line in reading.section("numa/addresses").words("ip addr").splitlines()]
    try:
        networks = [(words[1], ipaddress.ip_interface(words[3]).network) for words in lines]
    except (LookupError, ValueError) as error:
        raise UnreadableError("ip addr: printed what no known release prints") from error
    pairs = [(one, two) for one, two in combinations(networks, 2) if one[0] != two[0] and one[1].overlaps(two[1])]
    return {name for pair in pairs for name, _ in pair}


def _functions(reading: Reading) -> dict[str, pci.Function]:
    return pci.functions(reading.section("numa/lspci").words("lspci"))


@pytest.mark.wishes("numa", "max_read_request")
@pytest.mark.wishes("numa", "ports")
def test_max_read_request(node: Node, reading: Reading) -> None:
    """Each port reads in the declared portions."""
    found, wanted = _functions(reading), node.wishes["numa"]["max_read_request"]
    for address in _ports(node):
        size = found.get(address, pci.Function()).read_request
        if size is None:
            raise UnreadableError(f"lspci shows no MaxReadReq of {address}")
        compare(size == wanted, f"{address}: MaxReadReq is {size} bytes, wanted {wanted}")


@pytest.mark.wishes("numa", "use")
def test_acs(node: Node, reading: Reading) -> None:
    """On bare metal no switch turns traffic between GPUs and ports away; for guests every bridge isolates."""
    bare = node.wishes["numa"].get("use") == "bare-metal"
    found, bridges = _functions(reading), sorted(pci.counting(node, reading))
    for address in bridges:
        bridge = found.get(address)
        if bridge is None or (bridge.acs is None and not reading.is_root):
            raise UnreadableError(f"lspci shows nothing of {address}")
        why = f"{address} has no ACS: all below it is one group"
        compare(bare or bridge.acs is not None or not bridge.isolates, why)
        on = bridge.acs if bridge.acs is not None else frozenset()
        wrong = on & set(pci.REDIRECTS) if bare else (bridge.able & set(pci.ISOLATES)) - on
        compare(not wrong, f"{address}: {', '.join(sorted(wrong))} {'on' if bare else 'off'}")
    if not bridges:
        settled("no bridge is between the functions that count")
