"""What lspci and sysfs say of PCI Express. The node core reads configuration space itself; this suite asks lspci."""

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from gpufab_cli.verify.expected import Node
from gpufab_cli.verify.reading import Reading, UnreadableError, number, told

REDIRECTS = ("ReqRedir", "CmpltRedir", "UpstreamFwd", "EgressCtrl")
NVIDIA, GPUS = "0x10de", ("0x030000", "0x030200")
ISOLATES = ("SrcValid", "ReqRedir", "CmpltRedir", "UpstreamFwd")


@dataclass(frozen=True)
class Function:
    """One PCI function; what lspci does not show is None.

    Attributes:
        read_request: the largest read request in bytes.
        acs: the ACS controls that are on.
        able: those that it has.
        isolates: whether it is a port that has to have ACS for what is below it to be isolated.
    """

    read_request: int | None = None
    acs: frozenset[str] | None = None
    able: frozenset[str] = frozenset()
    isolates: bool = False


def functions(text: str) -> dict[str, Function]:
    """The functions of ``lspci -D -vv`` by address."""
    blocks: dict[str, list[str]] = {}
    address = ""
    for line in text.splitlines():
        if re.match(r"[0-9a-f]{4,8}:", line):
            address = line.split()[0]
        blocks.setdefault(address, []).append(line)
    return {address: _function("\n".join(lines)) for address, lines in blocks.items()}


def _function(text: str) -> Function:
    request = re.search(r"MaxReadReq (\d+) bytes", text)
    return Function(
        read_request=int(request[1]) if request else None,
        acs=_flags(text, "ACSCtl"),
        able=_flags(text, "ACSCap") or frozenset(),
        isolates=re.search(r"Express \(v\d+\) (?:Root|Downstream) Port", text) is not None,
    )


def _flags(text: str, register: str) -> frozenset[str] | None:
    line = re.search(rf"{register}:(.*)", text)
    return frozenset(re.findall(r"(\w+)\+", line[1])) if line else None


def rows(reading: Reading, name: str, width: int) -> list[list[str]]:
    """The lines of a section of numa's, by their fields.

    Raises:
        UnreadableError: there is no whole list.
    """
    return reading.section(f"numa/{name}").fields(name, width)


def places(node: Node, reading: Reading) -> dict[str, str]:
    """Where every function is in the tree of devices, those of all ports among them.

    Raises:
        UnreadableError: some is missing.
    """
    paths = dict(rows(reading, "paths", 2))
    for address in (port["pci"] for port in node.wishes["numa"]["ports"]):
        if address not in paths:
            raise UnreadableError(f"sysfs shows nothing at {address}")
    return paths


def identities(paths: Iterable[str], reading: Reading) -> dict[str, tuple[str, str, str]]:
    """Class, vendor and device of every function.

    Raises:
        UnreadableError: those of some function are missing.
    """
    found: dict[str, tuple[str, str, str]] = {}
    for address, *words in rows(reading, "functions", 4):
        kind, vendor, device = (told(word, f"what {address} is") for word in words)
        found[address] = kind, vendor, device
    for address in paths:
        if address not in found:
            raise UnreadableError(f"sysfs does not say what {address} is")
    return found


def counting(node: Node, reading: Reading) -> set[str]:
    """The bridges whose ACS counts: on bare metal between GPUs and ports below one root port, for guests all above."""
    paths, wish = places(node, reading), node.wishes["numa"]
    known = identities(paths, reading)
    gpus = [address for address, (kind, vendor, _) in known.items() if vendor == NVIDIA and kind in GPUS]
    ends = [*gpus, *(port["pci"] for port in wish["ports"])]
    return between(paths, gpus, ends) if wish.get("use") == "bare-metal" else above(paths, ends)


def cpus(text: str) -> set[int]:
    """The CPUs of a list as the kernel prints it.

    Raises:
        UnreadableError: it is none.
    """
    if not re.fullmatch(r"|[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*", text):
        raise UnreadableError(f"list of CPUs: {text if text != '?' else 'could not be read'}")
    runs = [part.partition("-") for part in text.split(",") if part]
    return {cpu for low, _, high in runs for cpu in range(int(low), int(high or low) + 1)}


def memory_nodes(reading: Reading) -> Iterator[tuple[str, bool, bool]]:
    """Each NUMA node, whether it has CPUs, and whether it has memory.

    Raises:
        UnreadableError: of some node that is not known.
    """
    for name, listed, memory in rows(reading, "nodes", 3):
        yield name, bool(cpus(listed)), number(memory, f"memory of {name}") > 0


def model(identity: tuple[str, str, str] | None) -> str:
    """A function as the kernel's arguments name its model."""
    return f"pci:{identity[1].removeprefix('0x')}:{identity[2].removeprefix('0x')}" if identity else ""


def place(paths: Mapping[str, str], bridge: str) -> str:
    """A bridge as the kernel's arguments name it: the root port's address, then devices and functions below."""
    first, *below = paths[bridge].split("/")[1:]
    return "/".join([first, *(address.rpartition(":")[2] for address in below)])


def between(paths: Mapping[str, str], ends: Iterable[str], others: Iterable[str]) -> set[str]:
    """The switch ports between functions below one root port; ``paths`` are their places below /sys/devices."""
    found: set[str] = set()
    others = tuple(others)
    for end in ends:
        for other in others:
            one, two = paths[end].split("/"), paths[other].split("/")
            if end != other and one[:2] == two[:2]:
                common = next(index for index, (a, b) in enumerate(zip(one, two, strict=False)) if a != b)
                found |= {*one[common:-1], *two[common:-1]}
    return found


def above(paths: Mapping[str, str], ends: Iterable[str]) -> set[str]:
    """Every bridge above the functions."""
    return {bridge for end in ends for bridge in paths[end].split("/")[1:-1]}
