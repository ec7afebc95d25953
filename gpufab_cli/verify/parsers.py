"""Parsers of what tools print as text. They are this suite's own: the node core has others."""

import ipaddress
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from gpufab_cli.verify.reading import NOT_READ, UnreadableError

PRIORITIES = 8
_GID = re.compile(r"[0-9]+ ((?:[0-9a-f]{4}:){7}[0-9a-f]{4}) (.+)")
_CLASS = re.compile("Global tclass=([0-9]{1,3})")
_MAC = "((?:[0-9a-f]{2}:){5}[0-9a-f]{2})(?![0-9a-f:])"


def _odd(what: str) -> UnreadableError:
    return UnreadableError(f"{what}: printed what no known release prints")


def row(text: str, key: str) -> list[tuple[int, str]]:
    """A line of ``dcb``, such as ``prio-pfc 0:off 1:on ...``, as (index, value) pairs."""
    rows = [words[1:] for words in map(str.split, text.splitlines()) if words[:1] == [key]]
    if len(rows) != 1 or not all(re.fullmatch(r"[0-9]{1,2}:\w+", word) for word in rows[0]):
        raise _odd(f"dcb, {key}")
    return [(int(index), value) for index, value in (word.split(":") for word in rows[0])]


def full_row(text: str, key: str) -> tuple[str, ...]:
    """A line of ``dcb`` that has one value for each of the eight priorities or traffic classes."""
    pairs = row(text, key)
    if [index for index, _ in pairs] != list(range(PRIORITIES)):
        raise _odd(f"dcb, {key}")
    return tuple(value for _, value in pairs)


def pfc(text: str) -> tuple[int, ...]:
    """The priorities with PFC, of ``dcb pfc show``."""
    flags = full_row(text, "prio-pfc")
    if not set(flags) <= {"on", "off"}:
        raise _odd("dcb, prio-pfc")
    return tuple(priority for priority, flag in enumerate(flags) if flag == "on")


def dscp(text: str) -> dict[int, tuple[int, ...]]:
    """The priorities of each DSCP, of ``dcb -N app show dev DEV dscp-prio``; an empty table prints nothing."""
    found: dict[int, tuple[int, ...]] = {}
    for code, priority in row(text, "dscp-prio") if text.strip() else ():
        found[code] = (*found.get(code, ()), _number(priority, "dcb, dscp-prio"))
    return found


def numbers(text: str, key: str) -> tuple[int, ...]:
    """A full row of ``dcb`` whose values are numbers."""
    return tuple(_number(value, f"dcb, {key}") for value in full_row(text, key))


def ets(text: str) -> tuple[tuple[int, ...], tuple[str, ...], tuple[int, ...]]:
    """Traffic class of each priority, algorithm and share of each class, of ``dcb ets show``."""
    return numbers(text, "prio-tc"), full_row(text, "tc-tsa"), numbers(text, "tc-bw")


def _number(text: str, what: str) -> int:
    if not re.fullmatch("[0-9]{1,19}", text):
        raise _odd(what)
    return int(text)


def cable_m(text: str) -> int:
    """The cable length in metres, which ``dcb pfc show`` calls delay."""
    match = re.search(r"^pfc-cap [0-9]+ .*\bdelay ([0-9]{1,5}) *$", text, re.MULTILINE)
    if not match:
        raise _odd("dcb, pfc-cap")
    return int(match[1])


def buffers(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The receive buffer of each priority, and the bytes of each buffer, of ``dcb -j buffer show``."""
    found = _json(text, "dcb, buffer", lambda data: (tuple(data["prio_buffer"]), tuple(data["buffer_size"])))
    if not all(len(values) == PRIORITIES and all(type(value) is int for value in values) for values in found):
        raise _odd("dcb, buffer")
    return found[0], found[1]


def named_numbers(text: str) -> dict[str, int]:
    """Files of one number each, a line each: name, number."""
    rows = [line.split() for line in text.splitlines()]
    if not all(len(row) == 2 for row in rows):  # noqa: PLR2004 (a name and a number)
        raise _odd("sysfs")
    return {name: _number(value, f"sysfs, {name}") for name, value in rows}


def pause(text: str) -> tuple[bool, bool]:
    """Global pause (rx, tx), of ``ethtool --json -a``."""
    found = _json(text, "ethtool", lambda data: (data[0]["rx"], data[0]["tx"]))
    if not all(isinstance(flag, bool) for flag in found):
        raise _odd("ethtool")
    return found[0], found[1]


def parse_json(text: str) -> Any:
    """JSON without infinities.

    Raises:
        ValueError: it is none, or nested too deeply.
    """

    def refuse(word: str) -> Any:
        raise ValueError(f"{word} is no number of JSON")

    try:
        return json.loads(text, parse_constant=refuse)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def _json(text: str, tool: str, pick: Callable[[Any], tuple[Any, Any]]) -> tuple[Any, Any]:
    try:
        return pick(parse_json(text))
    except (ValueError, LookupError, TypeError) as error:
        raise _odd(tool) from error


def link(text: str) -> tuple[str, int, str]:
    """MAC (the permanent one where it was changed), MTU and state, of ``ip -o link show``."""
    mac = re.search(rf"permaddr {_MAC}", text) or re.search(rf"link/ether {_MAC}", text)
    mtu, state = re.search(" mtu ([0-9]{1,6}) ", text), re.search(r" state (\S+) ", text)
    if not (mac and mtu and state):
        raise _odd("ip link")
    return mac[1].lower(), int(mtu[1]), state[1]


def rdma_links(text: str, netdev: str) -> list[tuple[str, str, str]]:
    """(device, state, physical state) of each port 1 on a netdev, of ``rdma link show``."""
    if not all(line.startswith("link ") for line in text.splitlines() if line.strip()):
        raise _odd("rdma link")
    pattern = re.compile(
        rf"^link (\S+)/1 .*?state (\S+) physical_state (\S+) .*?netdev {re.escape(netdev)}\s*$", re.MULTILINE
    )
    return [(name, state, physical) for name, state, physical in pattern.findall(text)]


def flags(text: str) -> tuple[int, ...]:
    """The priorities whose ``enable`` file reads 1, of all eight."""
    lines = text.split()
    if len(lines) != PRIORITIES or not set(lines) <= {"0", "1"}:
        raise _odd("ecn/*/enable")
    return tuple(priority for priority, flag in enumerate(lines) if flag == "1")


def two_numbers(text: str) -> tuple[int, int]:
    """The numbers in two files."""
    first, second = _two_lines(text)
    return _number(first, "sysfs"), _number(second, "sysfs")


def _two_lines(text: str) -> tuple[str, str]:
    lines = text.splitlines()
    if len(lines) != 2:  # noqa: PLR2004 (it is in the name)
        raise _odd("sysfs")
    return lines[0].strip(), lines[1].strip()


def bond(text: str) -> tuple[str, str, str]:
    """Name and mode of a port's bond, and what the bond takes the port's link for."""
    lines = text.splitlines()
    if len(lines) != 3:  # noqa: PLR2004 (as read.sh prints them)
        raise _odd("bonding")
    return lines[0], lines[1].partition(" ")[0], lines[2]


def traffic_class(text: str) -> int | None:
    """The traffic class forced on every queue pair; None: none is. Rules for single addresses are not looked at."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith(("src_ip=", "dst_ip="))]
    if not lines:
        return None
    match = _CLASS.fullmatch(lines[0].strip())
    if len(lines) > 1 or not match:
        raise _odd("traffic_class")
    return int(match[1])


def rdma_cm(text: str) -> tuple[int, str]:
    """Default ToS and RoCE mode of RDMA-CM."""
    tos, mode = _two_lines(text)
    return _number(tos, "default_roce_tos"), mode


_PARAMETERS = re.compile(r"^Configurations:\s+Default\s+Current\s+Next Boot\s*$", re.MULTILINE)


def firmware(text: str, name: str) -> tuple[str, str]:
    """A firmware parameter as it runs and as of the next boot, of ``mlxconfig -e q`` and ``mstconfig -e q``."""
    found = [words[words.index(name) + 1 :] for line in text.splitlines() if name in (words := _words(line))]
    if not _PARAMETERS.search(text) or len(found) != 1 or len(found[0]) != 3:  # noqa: PLR2004 (the columns)
        raise _odd(f"mlxconfig, {name}")
    return found[0][1], found[0][2]


def _words(line: str) -> list[str]:
    """A row's words, without the mark of those whose columns differ."""
    return line.removeprefix("*").split()


def v2_gids(lines: Sequence[str]) -> Iterator[ipaddress.IPv6Address]:
    """The RoCE v2 rows of a GID table, as ``read.sh`` prints it."""
    for line in lines:
        row = _GID.fullmatch(line)
        if not row or row[2] == NOT_READ:
            raise _odd("GID table")
        if row[2] == "RoCE v2":
            yield ipaddress.IPv6Address(row[1])


# udev(7): a rule is a line of KEY OPERATOR "VALUE" separated by commas; KEY may have an attribute in braces.
_PAIR = re.compile(r'\s*([A-Z_]+)(?:\{[^}]*\})?\s*(?:==|!=|=|\+=|-=|:=)\s*e?"((?:[^"\\]|\\.)*)"\s*(?:,|$)')


def udev_faults(text: str) -> Iterator[str]:
    """Lines of a rules file that are no rule, and jumps that lead nowhere."""
    pairs: list[tuple[str, str]] = []
    for number, line in enumerate(text.replace("\\\n", "").splitlines(), 1):
        rest = "" if line.lstrip().startswith("#") else line.strip()
        while rest and (pair := _PAIR.match(rest)):
            pairs.append((pair[1], pair[2]))
            rest = rest[pair.end() :]
        if rest:
            yield f"line {number}: {rest}"
    targets, labels = ({value for key, value in pairs if key == kind} for kind in ("GOTO", "LABEL"))
    yield from (f"GOTO {name} leads nowhere" for name in sorted(targets - labels))


def settings(text: str, *, first: bool) -> dict[str, str]:
    """``NAME=VALUE`` lines, of several about a name the first or the last."""
    pairs = [line.partition("=")[::2] for line in text.splitlines() if "=" in line and not line.startswith("#")]
    return dict(reversed(pairs) if first else pairs)


def rail_devices(names: Sequence[str], rails: Sequence[Mapping[str, str]]) -> list[str]:
    """The RDMA devices of rails in their order, from lines of a PCI address and a name.

    A bonded port has its RDMA device at another address of the bond, which is a rail too.

    Raises:
        UnreadableError: no rail has any.
    """
    pairs = [line.split() for line in names]
    if not all(len(pair) == 2 for pair in pairs):  # noqa: PLR2004 (an address and a name)
        raise _odd("list of RDMA devices")
    known = dict(pairs)
    found = list(dict.fromkeys(known[rail["pci"]] for rail in rails if rail["pci"] in known))
    if not found:
        raise UnreadableError("no rail has an RDMA device")
    return found
