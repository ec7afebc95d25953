"""A port's settings where neither ``dcb`` nor the vendor's sysfs shows them: ``mlnx_qos``, debugfs, configfs.

``mlnx_qos`` is read line by line, as it prints: a heading, then what belongs to it.
"""

import re
from collections.abc import Iterator, Mapping

from gpufab_cli.verify.reading import UnreadableError

PRIORITIES, DSCPS = 8, 64
DEBUGFS_NAMES = {
    "min_time_between_cnps": "np_min_time_between_cnps",
    "clamp_tgt_rate_after_time_inc": "rp_clamp_tgt_rate_ati",
}
"""DCQCN parameters whose file is not ``rp_`` and their name without ``rpg_`` (drivers/infiniband/hw/mlx5/cong.c)."""
BNXT_NAMES = {"min_time_between_cnps": "min_time_bet_cnp"}
Classes = tuple[tuple[int, ...], tuple[str, ...], tuple[int, ...]]


def _odd(part: str) -> UnreadableError:
    return UnreadableError(f"mlnx_qos, {part}: printed what no known release prints")


def _int(word: str, part: str) -> int:
    if not re.fullmatch("[0-9]{1,5}", word):
        raise _odd(part)
    return int(word)


def _after(text: str, heading: str) -> str:
    """What follows a heading on its own line."""
    found = [line.partition(heading)[2].strip() for line in text.splitlines() if line.startswith(heading)]
    if len(found) != 1:
        raise _odd(heading.rstrip(": "))
    return found[0]


def dscp(text: str) -> dict[int, tuple[int, ...]]:
    """The priorities of each DSCP; none while the port trusts 802.1p, when no map is printed.

    Raises:
        UnreadableError: it trusts DSCP, and not every one of the 64 is in the map that is printed then.
    """
    trust = _after(text, "Priority trust state:")
    if trust not in ("dscp", "pcp"):
        raise _odd("trust state")
    found: dict[int, tuple[int, ...]] = {}
    for line in text.splitlines() if trust == "dscp" else ():
        words = re.split("[ :]", line.strip())
        if words[0] == "prio" and "dscp" in words:
            for code in filter(None, words[-1].split(",")):
                known = _int(code, "DSCP map")
                found[known] = (*found.get(known, ()), _int(words[1], "DSCP map"))
    if trust == "dscp" and sorted(found) != list(range(DSCPS)):
        raise _odd("DSCP map")
    return found


def _row(text: str, name: str) -> tuple[int, ...]:
    """Eight numbers, a row of the table of priorities."""
    rows = [line.split()[1:] for line in text.splitlines() if line.startswith("\t") and line.split()[:1] == [name]]
    if len(rows) != 1 or len(rows[0]) != PRIORITIES:
        raise _odd(f"row of {name}")
    return tuple(_int(word, f"row of {name}") for word in rows[0])


def pfc(text: str) -> tuple[int, ...]:
    """The priorities with PFC."""
    if _row(text, "priority") != tuple(range(PRIORITIES)):
        raise _odd("row of priority")
    return tuple(priority for priority, flag in enumerate(_row(text, "enabled")) if flag)


def cable_m(text: str) -> int:
    """The cable length in metres."""
    return _int(_after(text, "Cable len:"), "Cable len")


def buffers(text: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The receive buffer of each priority, and the bytes of each buffer."""
    sizes = _after(text, "Receive buffer size (bytes):").split(",")[:PRIORITIES]
    if len(sizes) != PRIORITIES or not all(re.fullmatch("[0-9]{1,10}", size) for size in sizes):
        raise _odd("Receive buffer size")
    return _row(text, "buffer"), tuple(map(int, sizes))


def ets(text: str) -> Classes:
    """Traffic class of each priority, algorithm and share of each class."""
    classes: dict[int, tuple[str, int]] = {}
    members: dict[int, int] = {}
    for number, line in _class_lines(text):
        words = line.replace(",", " ").split()
        if words[0] == "priority:":
            members[_int(words[-1], "priority")] = number
        else:
            algorithm = words[words.index("tsa:") + 1 :]  # ets bw: 50%, or strict
            classes[number] = algorithm[0], _int(algorithm[-1].rstrip("%"), "bw") if "bw:" in algorithm else 0
    if sorted(classes) != list(range(PRIORITIES)) or sorted(members) != list(range(PRIORITIES)):
        raise _odd("traffic classes")
    ordered = [classes[number] for number in range(PRIORITIES)]
    return tuple(members[n] for n in range(PRIORITIES)), tuple(t for t, _ in ordered), tuple(s for _, s in ordered)


def _class_lines(text: str) -> Iterator[tuple[int, str]]:
    """The lines of traffic classes, each with the class it belongs to. Without their numbers no class is known."""
    number = -1
    for line in text.partition("PFC configuration:")[2].splitlines():
        words = line.split()
        if words[:1] == ["tc:"] and "tsa:" in words[:-1]:
            number = _int(words[1], "tc")
            yield number, line
        elif words[:1] == ["priority:"] and number >= 0:
            yield number, line
        elif words[:1] and words[0].rstrip(",") in ("ets", "strict", "vendor"):
            raise _odd("number of a traffic class")


def mask(value: str) -> tuple[int, ...]:
    """The priorities of a firmware's mask, in decimal or hexadecimal."""
    if not re.fullmatch(r"0x[0-9a-fA-F]{1,2}|0|[1-9][0-9]{0,2}", value) or int(value, 0) >= 1 << PRIORITIES:
        raise UnreadableError(f"mask of priorities: {value}")
    return tuple(priority for priority in range(PRIORITIES) if int(value, 0) & 1 << priority)


def debugfs_cnp(values: Mapping[str, int]) -> tuple[int, int | None]:
    """DSCP and priority of CNPs; None while the firmware chooses the priority."""
    wanted = ("np_cnp_dscp", "np_cnp_prio_mode", "np_cnp_prio")
    code, chosen, priority = (number(values, name, "cc_params") for name in wanted)
    return code, None if chosen else priority


def number(values: Mapping[str, int], name: str, where: str) -> int:
    """One of the values that a driver shows.

    Raises:
        UnreadableError: it shows none of that name.
    """
    if name not in values:
        raise UnreadableError(f"{where} has no {name}")
    return values[name]


def dcqcn(values: Mapping[str, int], names: Mapping[str, str], knob: str, where: str) -> int:
    """A DCQCN parameter by its usual name."""
    name = names.get(knob, "rp_" + knob.removeprefix("rpg_") if names is DEBUGFS_NAMES else knob)
    return number(values, name, where)


def hexadecimal(text: str) -> dict[str, int]:
    """Files of one number each, as bnxt_re prints it: 0 or 0x…; a line each: name, number."""
    rows = [line.split() for line in text.splitlines()]
    if not all(len(row) == 2 and re.fullmatch("0|0x[0-9a-f]{1,8}", row[1]) for row in rows):  # noqa: PLR2004
        raise UnreadableError("configfs of bnxt_re: printed what no known release prints")
    return {name: int(value, 16) for name, value in rows}
