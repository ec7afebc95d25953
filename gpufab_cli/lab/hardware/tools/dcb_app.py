"""dcb's app object: the DSCP map.

mlx5 knows no other entries, holds one priority a DSCP, and derives trust from the map.
"""

import errno
from dataclasses import dataclass
from functools import partial

from gpufab_cli.lab.hardware.model import fail
from gpufab_cli.lab.hardware.tools.dcb_words import Call, Map, RefusedError, as_json, unsigned

_DSCP = Map("DSCP", "PRIO", 63, 7)
_PORT = Map("PORT", "PRIO", 0xFFFF, 7)
_ETHTYPE = Map("ETHTYPE", "PRIO", 0xFFFF, 7)
_PCP = Map("PCP", "PRIO", 15, 7)
# RFC 2474, 2597 and 3246 code points, as iproute2's rt_dsfield names them.
NAMES = {
    **{8 * level: f"CS{level}" for level in range(1, 8)},
    **{8 * level + 2 * drop: f"AF{level}{drop}" for level in range(1, 5) for drop in range(1, 4)},
    46: "EF",
    0: "default",
}
_CODES = {name: code for code, name in NAMES.items()}
_LOWEST_ETHTYPE = 0x600
# Order of printing.
_KINDS = ("ethtype-prio", "default-prio", "dscp-prio", "stream-port-prio", "dgram-port-prio", "port-prio", "pcp-prio")


@dataclass(frozen=True)
class _Entry:
    kind: str
    key: int
    priority: int


def show(call: Call) -> str:
    """Prints the map; DSCPs by name unless -N or -j is given."""
    kinds = _kinds(call)
    table = sorted(call.hw.port(call.netdev).dscp.items()) if "dscp-prio" in kinds else []
    if "j" in call.given:
        # The third element is a slip of iproute2's: the space that ends a token of text.
        rows = [[dscp, priority, " "] for dscp, priority in table]
        return as_json({"dscp_prio": rows} if rows else {}, "p" in call.given)
    if not table:
        return ""
    names: dict[int, str] = {} if "N" in call.given else NAMES
    return "dscp-prio " + "".join(f"{names.get(dscp, dscp)}:{priority} " for dscp, priority in table) + "\n"


def flush(call: Call) -> str:
    """Removes all mappings."""
    if "dscp-prio" in _kinds(call):
        _delete(call, _table(call))
    return ""


def add(call: Call) -> str:
    """Adds mappings."""
    _add(call, _parse(call))
    return ""


def delete(call: Call) -> str:
    """Removes mappings."""
    _delete(call, _parse(call))
    return ""


def replace(call: Call) -> str:
    """Adds mappings and removes what they replace.

    dcb ends well here whatever happens. And mlx5 has dropped the old entry by itself when dcb comes to remove it.
    """
    entries, held = _parse(call), _table(call)
    try:
        _add(call, [entry for entry in entries if entry not in held])
    except RefusedError as refused:
        raise RefusedError(f"{refused.stderr}Could not add new APP entries\n", 0) from None
    keys = {(entry.kind, entry.key) for entry in entries}
    try:
        _delete(call, [entry for entry in held if (entry.kind, entry.key) in keys and entry not in entries])
    except RefusedError as refused:
        raise RefusedError(f"{refused.stderr}Could not remove replaced APP entries\n", 0) from None
    return ""


def _kinds(call: Call) -> set[str]:
    kinds = set()
    while call.words:
        kinds.add(call.words.keyword(_KINDS))
    return kinds or set(_KINDS)


def _table(call: Call) -> list[_Entry]:
    return [_Entry("dscp-prio", dscp, priority) for dscp, priority in sorted(call.hw.port(call.netdev).dscp.items())]


def _add(call: Call, entries: list[_Entry]) -> None:
    def act() -> None:
        for entry in entries:
            _check(entry)
            call.hw.set_dscp(call.netdev, entry.key, entry.priority)

    if entries:
        call.writing(act)


def _delete(call: Call, entries: list[_Entry]) -> None:
    def act() -> None:
        for entry in entries:
            _check(entry)
            call.hw.unset_dscp(call.netdev, entry.key, entry.priority)

    if entries:
        call.writing(act)


def _check(entry: _Entry) -> None:
    if entry.kind != "dscp-prio":
        raise fail(errno.EOPNOTSUPP)


def _parse(call: Call) -> list[_Entry]:
    """The entries named on the command line."""
    entries: list[_Entry] = []
    while call.words:
        kind = call.words.keyword(_KINDS)
        if kind == "default-prio":
            entries += [_Entry(kind, 0, prio) for prio in call.words.numbers("Invalid default priority")]
            continue
        call.words.mapping("Invalid mapping", partial(_put, entries, kind))
    return entries


def _put(entries: list[_Entry], kind: str, key: str, value: str) -> None:
    """Adds what one KEY:VALUE word says."""
    mapping = {"dscp-prio": _DSCP, "ethtype-prio": _ETHTYPE, "pcp-prio": _PCP}.get(kind, _PORT)
    entries.extend(_Entry(kind, code, mapping.number(value)) for code in mapping.keys(_key(kind, key)))


def _key(kind: str, key: str) -> str:
    """A key as a number: code points have names, EtherTypes a lowest value, PCPs a drop bit."""
    if kind == "dscp-prio":
        return str(_CODES.get(key, key))
    if kind == "ethtype-prio" and (unsigned(key) or 0) < _LOWEST_ETHTYPE:
        raise RefusedError("Protocol IDs < 0x600 are reserved for EtherType\n")
    if kind == "pcp-prio":
        level = unsigned(key[:-2])
        if level is None or key[-2:] not in ("nd", "de"):
            raise RefusedError("")
        return str(level + 8 * (key[-2:] == "de"))
    return key
