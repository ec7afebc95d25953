"""The iproute2 ``dcb`` backend: PFC, DSCP map, ETS, buffers and DCBX of a port, read as JSON and written by argv.

Grammar: iproute2 dcb/dcb_pfc.c, dcb_app.c, dcb_ets.c, dcb_buffer.c, dcb_dcbx.c. In ``app`` each JSON tuple carries a
third element ``" "``.
"""

from typing import Any, Callable, Dict, Iterable, List, Mapping, Sequence, Tuple, TypeVar, Union

from ..change import Unknown
from ..host import Host, HostError, Output, Reader
from ..texts import parse_json
from . import dcb_batch
from .backend import Dcb, Ets, Pairs
from .dcb_batch import Answer
from .seen import Owner
from .want import DSCPS, PRIORITIES

T = TypeVar("T")


OBJECTS = ("app", "ets", "pfc", "dcbx")
APP_TABLES = {
    *("ethtype_prio", "default_prio", "dscp_prio", "stream_port_prio", "dgram_port_prio", "port_prio", "pcp_prio")
}
"""What ``dcb app show`` may print. Another word might be the DSCP map under a new name."""


def read(host: Reader, netdevs: Mapping[str, bool]) -> Dict[str, Dcb]:
    """What dcb shows of netdevs; the buffers, Unknown where nobody asks for them, of those that are true."""
    asked = [(what, netdev) for netdev in netdevs for what in OBJECTS]
    asked += [("buffer", netdev) for netdev, buffers in netdevs.items() if buffers]
    answers = dcb_batch.ask(host, asked) if asked else {}
    return {netdev: _read(answers, netdev) for netdev in netdevs}


def _read(answers: Mapping[Tuple[str, str], Answer], netdev: str) -> Dcb:
    dscp = _parse("app", netdev, answers["app", netdev], _parse_app)
    ets = _parse("ets", netdev, answers["ets", netdev], _parse_ets)
    prio_tc, tc_tsa, tc_bw = (ets, ets, ets) if isinstance(ets, Unknown) else ets
    pfc, sizes = answers["pfc", netdev], answers.get(("buffer", netdev), Unknown("not asked for"))
    return Dcb(
        dcbx=_owner(netdev, answers["dcbx", netdev]),
        trust=dscp if isinstance(dscp, Unknown) else "dscp" if dscp else "pcp",
        dscp=dscp,
        pfc=_parse("pfc", netdev, pfc, _parse_pfc),
        prio_tc=prio_tc,
        tc_tsa=tc_tsa,
        tc_bw=tc_bw,
        cable_m=_parse("pfc", netdev, pfc, lambda data: _int(data["delay"], 65535)),
        prio_buffer=_parse("buffer", netdev, sizes, lambda data: _eight(data["prio_buffer"], PRIORITIES - 1)),
        buffer_bytes=_parse("buffer", netdev, sizes, lambda data: _eight(data["buffer_size"], 2**32 - 1)),
    )


def _parse(what: str, netdev: str, output: Answer, parse: Callable[[Dict[str, Any]], T]) -> Union[T, Unknown]:
    """Parse one ``dcb -j WHAT show``; whatever does not look like any known release is Unknown."""
    if isinstance(output, Unknown):
        return output
    if output.rc != 0:
        return Unknown(f"dcb {what} show dev {netdev}: {output.error}")
    try:
        return parse(parse_json(output.stdout))
    except (ValueError, LookupError, TypeError, AttributeError):
        return Unknown(f"dcb {what} show dev {netdev}: printed what no known release prints")


def _parse_pfc(data: Dict[str, Any]) -> Tuple[int, ...]:
    """The priorities that have PFC on."""
    flags = data["prio_pfc"]
    if len(flags) != PRIORITIES or not all(isinstance(flag, bool) for flag in flags):
        raise ValueError("prio_pfc")
    return tuple(priority for priority, on in enumerate(flags) if on)


def _parse_app(data: Dict[str, Any]) -> Pairs:
    """The (DSCP, priority) entries of the APP table, ascending. A table without entries is not printed at all."""
    if not isinstance(data, dict) or not set(data) <= APP_TABLES:
        raise TypeError("app")
    return tuple(
        sorted((_int(entry[0], DSCPS - 1), _int(entry[1], PRIORITIES - 1)) for entry in data.get("dscp_prio", ()))
    )


def _parse_ets(data: Dict[str, Any]) -> Tuple[Tuple[int, ...], Tuple[str, ...], Tuple[int, ...]]:
    """The traffic class of each priority, and the algorithm and bandwidth (percent) of each traffic class."""
    prio_tc, tc_tsa, tc_bw = data["prio_tc"], data["tc_tsa"], data["tc_bw"]
    if not len(prio_tc) == len(tc_tsa) == len(tc_bw) == PRIORITIES:
        raise ValueError("ets")
    if not all(isinstance(word, str) for word in tc_tsa):
        raise TypeError("tc_tsa")
    return tuple(_int(tc, PRIORITIES - 1) for tc in prio_tc), tuple(tc_tsa), tuple(_int(bw, 100) for bw in tc_bw)


def _owner(netdev: str, output: Answer) -> Union[Owner, Unknown]:
    """Who owns DCBX. A driver without getdcbx has no DCBX that could: the host's settings stand (net/dcb/dcbnl.c)."""
    if isinstance(output, Output) and output.rc != 0 and "Operation not supported" in output.stderr:
        return "host"
    return _parse("dcbx", netdev, output, _parse_dcbx)


def _parse_dcbx(data: Dict[str, Any]) -> Owner:
    """Which flags stand for whom: include/uapi/linux/dcbnl.h, DCB_CAP_DCBX_*. False flags are not printed."""
    if not isinstance(data, dict) or not set(data) <= {"lld_managed", "host", "cee", "ieee", "static"}:
        raise TypeError("dcbx")
    return "host" if data.get("host") is True and data.get("lld_managed") is not True else "firmware"


def _eight(values: Sequence[object], high: int) -> Tuple[int, ...]:
    if len(values) != PRIORITIES:
        raise ValueError("buffer")
    return tuple(_int(value, high) for value in values)


def _int(value: object, high: int) -> int:
    if type(value) is not int or not 0 <= value <= high:
        raise TypeError(str(value))
    return value


def set_owner(host: Host, netdev: str, owner: Owner) -> None:
    """Take DCBX from the firmware. There is no word that gives it back: no flag at all prints dcb's help."""
    if owner == "firmware":
        raise HostError(f"dcb cannot give DCBX of {netdev} back to the firmware; a driver reload does")
    host.run("dcb", "dcbx", "set", "dev", netdev, "host", "ieee")


def set_pfc(host: Host, netdev: str, priorities: Sequence[int]) -> None:
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


def set_ets(host: Host, netdev: str, ets: Ets) -> None:
    """All of ETS in one request."""
    host.run(
        *("dcb", "ets", "set", "dev", netdev),
        *("tc-tsa", *_pairs(enumerate(ets.tc_tsa))),
        *("tc-bw", *_pairs(enumerate(ets.tc_bw))),
        *("prio-tc", *_pairs(enumerate(ets.prio_tc))),
    )


def set_cable(host: Host, netdev: str, metres: int) -> None:
    """The cable length, which DCB calls the delay."""
    host.run("dcb", "pfc", "set", "dev", netdev, "delay", str(metres))


def set_prio_buffer(host: Host, netdev: str, prio_buffer: Sequence[int]) -> None:
    """The receive buffer of each priority."""
    host.run("dcb", "buffer", "set", "dev", netdev, "prio-buffer", *_pairs(enumerate(prio_buffer)))


def set_buffer_bytes(host: Host, netdev: str, sizes: Sequence[int]) -> None:
    """The size of each receive buffer in bytes."""
    host.run("dcb", "buffer", "set", "dev", netdev, "buffer-size", *_pairs(enumerate(sizes)))


def _pairs(items: Iterable[Tuple[int, object]]) -> List[str]:
    return [f"{key}:{value}" for key, value in items]
