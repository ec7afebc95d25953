"""The iproute2 ``dcb`` backend: PFC, DSCP map and ETS of a port, read as JSON and written by argv.

Grammar: iproute2 dcb/dcb_pfc.c, dcb_app.c, dcb_ets.c. In ``app`` each JSON tuple carries a third element ``" "``.
"""

import json
from typing import Any, Callable, Dict, Iterable, List, Sequence, Tuple, TypeVar, Union

from ..change import Unknown
from ..host import Host, Reader
from .want import PRIORITIES

T = TypeVar("T")
Pairs = Tuple[Tuple[int, int], ...]


def _show(host: Reader, what: str, netdev: str, parse: Callable[[Dict[str, Any]], T]) -> Union[T, Unknown]:
    """Parse one ``dcb -j WHAT show``; whatever does not look like any known release is Unknown."""
    output = host.query("dcb", "-j", what, "show", "dev", netdev)
    if isinstance(output, Unknown):
        return output
    if output.rc != 0:
        return Unknown(f"dcb {what} show dev {netdev}: {output.error}")
    try:
        return parse(json.loads(output.stdout))
    except (ValueError, KeyError, TypeError, IndexError):
        return Unknown(f"dcb {what} show dev {netdev}: printed what no known release prints")


def read_pfc(host: Reader, netdev: str) -> Union[Tuple[int, ...], Unknown]:
    """The priorities that have PFC on."""
    return _show(host, "pfc", netdev, _parse_pfc)


def read_dscp(host: Reader, netdev: str) -> Union[Pairs, Unknown]:
    """The (DSCP, priority) entries of the APP table, ascending."""
    return _show(host, "app", netdev, _parse_app)


def read_ets(host: Reader, netdev: str) -> Union[Tuple[Tuple[int, ...], Tuple[str, ...], Tuple[int, ...]], Unknown]:
    """The traffic class of each priority, and the algorithm and bandwidth (percent) of each traffic class."""
    return _show(host, "ets", netdev, _parse_ets)


def _parse_pfc(data: Dict[str, Any]) -> Tuple[int, ...]:
    flags = data["prio_pfc"]
    if len(flags) != PRIORITIES or not all(isinstance(flag, bool) for flag in flags):
        raise ValueError("prio_pfc")
    return tuple(priority for priority, on in enumerate(flags) if on)


def _parse_app(data: Dict[str, Any]) -> Pairs:
    if not isinstance(data, dict):
        raise TypeError("app")
    return tuple(sorted((_int(entry[0]), _int(entry[1])) for entry in data.get("dscp_prio", ())))


def _parse_ets(data: Dict[str, Any]) -> Tuple[Tuple[int, ...], Tuple[str, ...], Tuple[int, ...]]:
    prio_tc, tc_tsa, tc_bw = data["prio_tc"], data["tc_tsa"], data["tc_bw"]
    if not len(prio_tc) == len(tc_tsa) == len(tc_bw) == PRIORITIES:
        raise ValueError("ets")
    if not all(isinstance(word, str) for word in tc_tsa):
        raise TypeError("tc_tsa")
    return tuple(map(_int, prio_tc)), tuple(tc_tsa), tuple(map(_int, tc_bw))


def _int(value: object) -> int:
    if type(value) is not int:
        raise TypeError(str(value))
    return value


def set_pfc(host: Host, netdev: str, priorities: Iterable[int]) -> None:
    """PFC on for exactly these priorities. An effective change makes mlx5 toggle the link."""
    host.run("dcb", "pfc", "set", "dev", netdev, "prio-pfc", "all:off", *(f"{p}:on" for p in priorities))


def set_dscp(host: Host, netdev: str, current: Pairs, desired: Pairs) -> None:
    """Turn the APP table's DSCP entries from ``current`` into ``desired``, with the lossless map never empty between.

    ``add`` and ``del`` name whole entries. mlx5 keeps one priority a DSCP, so there ``add`` replaces; an old entry is
    deleted only when its DSCP is not wanted at all, or when the driver keeps both.
    """
    wanted = dict(desired)
    added = [pair for pair in desired if pair not in current]
    surplus = [pair for pair in current if pair[0] not in wanted]
    doubled = {dscp for dscp, _ in current if sum(d == dscp for d, _ in current) > 1}
    replaced = [pair for pair in desired if pair in added or pair[0] in doubled]
    if replaced:
        host.run("dcb", "app", "replace", "dev", netdev, "dscp-prio", *_pairs(replaced))
    if surplus:
        host.run("dcb", "app", "del", "dev", netdev, "dscp-prio", *_pairs(surplus))


def set_ets(host: Host, netdev: str, prio_tc: Sequence[int], tc_tsa: Sequence[str], tc_bw: Sequence[int]) -> None:
    """All of ETS in one request: the kernel checks the sum of the bandwidths against the algorithms."""
    host.run(
        *("dcb", "ets", "set", "dev", netdev),
        *("tc-tsa", *_pairs(enumerate(tc_tsa))),
        *("tc-bw", *_pairs(enumerate(tc_bw))),
        *("prio-tc", *_pairs(enumerate(prio_tc))),
    )


def _pairs(items: Iterable[Tuple[int, object]]) -> List[str]:
    return [f"{key}:{value}" for key, value in items]
