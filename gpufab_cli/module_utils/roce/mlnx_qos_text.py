"""What ``mlnx_qos -a -i IF`` prints, in every release: parts that an older one lacks are Unknown, never a default.

Grammar: mlnx-tools, python/mlnx_qos (pretty_print). Drift that is known: the DCBX line, the buffer rows, the suffix of
the buffer line (none, ``total_size=``, ``max_buffer_size=``), the order of the classes, a removed "default priority"
block, a banner about lldpad, "not supported" lines before everything else, and class lines without ``tc: N`` where
rate limits cannot be read.
"""

import re
from typing import Dict, List, Match, Optional, Tuple, Union

from ..change import Unknown
from .backend import Dcb
from .seen import Owner
from .want import DSCPS, PRIORITIES

_ROW = r"((?: +[0-9]{1,9}){8}) *"
_CLASS = re.compile(
    r"(?:tc: ([0-7]) ratelimit: (?:unlimited|[0-9.]+ Gbps), tsa: )?(vendor|strict|ets)(?:, bw: (100|[0-9]{1,2})%)?"
)
_BUFFERS = re.compile(r"Receive buffer size \(bytes\): ((?:[0-9]{1,10},){8})(?:(?:total|max_buffer)_size=[0-9]+)?")
_OWNERS: Dict[str, Owner] = {"OS": "host", "Firmware": "firmware"}


def nothing(reason: Unknown) -> Dcb:
    """Nothing could be read."""
    return Dcb(*[reason] * 10)


def parse(text: str, error: str, netdev: str) -> Dcb:
    """The port's state; ``error`` says how the program ended if it did not end well."""
    unsupported = re.findall(r"^(.+?)(?: is| are)? not supported on your system!?$", text, re.MULTILINE)
    if error and "PFC configuration:" not in text:
        if len(unsupported) > 1:
            return nothing(Unknown(f"mlnx_qos: {netdev} has no DCB at all: is it a virtual device above a port?"))
        return nothing(Unknown(f"mlnx_qos -i {netdev}: {error}"))
    found = _Text(text, netdev)
    trust, dscp = found.map()
    prio_tc, tc_tsa, tc_bw = found.classes()
    return Dcb(
        dcbx=found.owner(),
        trust=trust,
        dscp=dscp,
        pfc=found.pfc(),
        prio_tc=prio_tc,
        tc_tsa=tc_tsa,
        tc_bw=tc_bw,
        cable_m=found.cable(),
        prio_buffer=found.prio_buffer(),
        buffer_bytes=found.buffer_bytes(),
    )


Numbers = Union[Tuple[int, ...], Unknown]
Pairs = Union[Tuple[Tuple[int, int], ...], Unknown]


class _Text:
    """One output, asked part by part."""

    def __init__(self, text: str, netdev: str) -> None:
        self._text, self._netdev = text, netdev

    def _strange(self, part: str) -> Unknown:
        return Unknown(f"mlnx_qos -i {self._netdev}: no {part} as a known release prints it")

    def _line(self, pattern: str) -> Optional[Match[str]]:
        """The one line that matches; None when there is none, or when two contradict one another."""
        found = list(re.finditer(rf"^(?:{pattern})$", self._text, re.MULTILINE))
        return found[0] if len(found) == 1 else None

    def owner(self) -> Union[Owner, Unknown]:
        """Who runs DCBX; OFED 4 does not say."""
        line = self._line(r"DCBX mode: (OS|Firmware) controlled")
        return _OWNERS[line.group(1)] if line else self._strange("DCBX mode")

    def map(self) -> Tuple[Union[str, Unknown], Pairs]:
        """Trust, and the DSCP map, which is shown only while DSCP is trusted."""
        line = self._line(r"Priority trust state: (dscp|pcp)")
        if line is None:
            strange = self._strange("trust state")
            return strange, strange
        if line.group(1) == "pcp":
            return "pcp", ()
        return "dscp", self._dscps()

    def _dscps(self) -> Pairs:
        pairs: List[Tuple[int, int]] = []
        for priority, listed in re.findall(r"^\tprio:([0-7]) dscp:((?:[0-9]{2},)*)$", self._text, re.MULTILINE):
            pairs += [(int(dscp), int(priority)) for dscp in listed.split(",") if dscp]
        dscps = sorted(dscp for dscp, _ in pairs)
        return tuple(sorted(pairs)) if dscps == list(range(DSCPS)) else self._strange("complete DSCP map")

    def _row(self, name: str, high: int) -> Numbers:
        """A row of the table below "PFC configuration:"."""
        line = self._line(rf"\t{name}{_ROW}")
        numbers = tuple(map(int, line.group(1).split())) if line else ()
        return numbers if numbers and max(numbers) <= high else self._strange(f"row of {name}")

    def pfc(self) -> Numbers:
        """The priorities that have PFC on."""
        heading, flags = self._row("priority", PRIORITIES - 1), self._row("enabled", 1)
        if heading != tuple(range(PRIORITIES)) or isinstance(flags, Unknown):
            return self._strange("PFC table")
        return tuple(priority for priority, flag in enumerate(flags) if flag)

    def prio_buffer(self) -> Numbers:
        """The buffer of each priority."""
        return self._row("buffer", PRIORITIES - 1)

    def buffer_bytes(self) -> Numbers:
        """The size of each buffer."""
        line = self._line(_BUFFERS.pattern)
        return tuple(int(size) for size in line.group(1).split(",") if size) if line else self._strange("buffer sizes")

    def cable(self) -> Union[int, Unknown]:
        """The cable length in metres."""
        line = self._line(r"Cable len: ([0-9]{1,5})")
        return int(line.group(1)) if line else self._strange("cable length")

    def classes(self) -> Tuple[Numbers, Union[Tuple[str, ...], Unknown], Numbers]:
        """Traffic class of each priority, algorithm and share of each class."""
        classes = self._class_lines()
        if sorted(classes) != list(range(PRIORITIES)):
            strange = self._strange("complete list of traffic classes")
            return strange, strange, strange
        ordered = [classes[tc] for tc in range(PRIORITIES)]
        prio_tc = {priority: tc for tc, (_, _, priorities) in enumerate(ordered) for priority in priorities}
        whole = sum(len(priorities) for _, _, priorities in ordered) == len(prio_tc) == PRIORITIES
        return (
            tuple(prio_tc[priority] for priority in range(PRIORITIES)) if whole else self._strange("priority's class"),
            tuple(tsa for tsa, _, _ in ordered),
            tuple(share for _, share, _ in ordered),
        )

    def _class_lines(self) -> Dict[int, Tuple[str, int, List[int]]]:
        """Algorithm, share and priorities by class; empty where a line cannot be told to belong to a class."""
        classes: Dict[int, Tuple[str, int, List[int]]] = {}
        last = -1
        for line in self._text.split("PFC configuration:", 1)[-1].splitlines():
            head, member = _CLASS.fullmatch(line), re.fullmatch(r"\t priority:  ([0-7])", line)
            if head:
                tc, tsa, share = head.groups()
                # Where rate limits cannot be read no class has its number, and older releases do not sort them.
                if tc is None or int(tc) in classes or (tsa == "ets") != (share is not None):
                    return {}
                last = int(tc)
                classes[last] = (tsa, int(share or 0), [])
            elif member and last in classes:
                classes[last][2].append(int(member.group(1)))
        return classes
