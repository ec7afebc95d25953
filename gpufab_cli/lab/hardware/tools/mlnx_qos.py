"""mlnx_qos, the vendor's Python script: what it prints in each release, and how little its exit status says.

It applies what one call asks for in an order of its own: DCBX, cable length, PFC, DSCP map, trust, buffers, ETS. Where
the vendor driver's qos/ is in sysfs, as here, it forgets to remove DSCPs and takes only the first buffer option.
"""

import errno
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from gpufab_cli.lab.hardware.model import Hardware, fail
from gpufab_cli.lab.hardware.state import PRIORITIES
from gpufab_cli.lab.hardware.tools import mlnx_qos_print
from gpufab_cli.lab.hardware.tools.answer import Answer, Request

_USAGE = "Usage: \nmlnx_qos -i <interface> [options]\n"
_OPTIONS = {
    "-i": "interface",
    "--interface": "interface",
    "-f": "pfc",
    "--pfc": "pfc",
    "-p": "prio_tc",
    "--prio_tc": "prio_tc",
    "-s": "tsa",
    "--tsa": "tsa",
    "-t": "tcbw",
    "--tcbw": "tcbw",
    "-d": "dcbx",
    "--dcbx": "dcbx",
    "-P": "get_pfc",
    "--get_pfc": "get_pfc",
    "--trust": "trust",
    "--dscp2prio": "dscp2prio",
    "--cable_len": "cable_len",
    "--prio2buffer": "prio2buffer",
    "--buffer_size": "buffer_size",
}
_DSCPS = 64


class _StopError(Exception):
    """The script ends here, with what it says on stdout or stderr."""

    def __init__(self, stdout: str = "", stderr: str = "") -> None:
        super().__init__(stdout or stderr)
        self.stdout, self.stderr = stdout, stderr


@dataclass
class _Call:
    """One call: the options given, by their long names."""

    hw: Hardware
    request: Request
    given: dict[str, str] = field(default_factory=dict)
    dscps: list[str] = field(default_factory=list)
    every_class: bool = False

    @property
    def netdev(self) -> str:
        return self.given["interface"]

    def set(self, act: Callable[[], None]) -> None:
        """Sets something; the script dies of its own error message when the kernel refuses."""
        try:
            if not self.request.is_root:
                raise fail(errno.EPERM)
            with self.hw.writes.write("mlnx_qos", " ".join(self.request.argv), alive=self.request.alive):
                act()
        except OSError:
            trace = 'Traceback (most recent call last):\nTypeError: can only concatenate str (not "Exception") to str\n'
            raise _StopError(stderr=trace) from None


def answer(hw: Hardware, request: Request) -> Answer:
    """Answers one call."""
    call = _Call(hw, request)
    try:
        _parse(call)
        for name, act in _ORDER.items():
            if name in call.given or (name == "dscp2prio" and call.dscps):
                act(call)
        if "get_pfc" in call.given:
            return Answer(f"{int(hw.port(call.netdev).pfc[int(call.given['get_pfc'])])}\n")
        lldpad = mlnx_qos_print.lldpad_runs(request.pid)
        return Answer(mlnx_qos_print.port(hw, call.netdev, every_class=call.every_class, lldpad=lldpad))
    except _StopError as stop:
        return Answer(stop.stdout, stop.stderr, 1)


def _parse(call: _Call) -> None:
    words = list(call.request.argv)
    while words:
        word, _, glued = words.pop(0).partition("=")
        if word == "-a":
            call.every_class = True
            continue
        name = _OPTIONS.get(word)
        if name is None or not (glued or words):
            raise _StopError(stderr=f"{_USAGE}\nmlnx_qos: error: no such option: {word}\n")
        value = glued or words.pop(0)
        if name == "dscp2prio":
            call.dscps.append(value)
        else:
            call.given[name] = value
    if "interface" not in call.given:
        raise _StopError("Interface name is required\n" + _USAGE)
    if call.hw.place(call.netdev) is None:
        raise _StopError(mlnx_qos_print.NOTHING_SUPPORTED)
    if call.dscps and "trust" in call.given:
        raise _StopError("trust and dscp2prio cannot be set in one call\n")


def _eight(call: _Call, name: str, what: str, low: int, high: int) -> list[int]:
    words = call.given[name].split(",")
    if len(words) > PRIORITIES:
        raise _StopError(f"Too many items for {what}\n")
    if len(words) < PRIORITIES or not all(word.isdigit() and low <= int(word) <= high for word in words):
        raise _StopError(f"{what.lower()} list must have 8 items\n")
    return [int(word) for word in words]


def _dcbx(call: _Call) -> None:
    if call.given["dcbx"] not in ("os", "fw"):
        raise _StopError("dcbx: os or fw\n")
    flags = ["host", "ieee"] if call.given["dcbx"] == "os" else ["cee", "ieee"]
    call.set(lambda: call.hw.change(call.netdev, lambda port: setattr(port, "dcbx", flags)))


def _cable(call: _Call) -> None:
    pfc = list(call.hw.port(call.netdev).pfc)
    call.set(lambda: call.hw.set_pfc(call.netdev, pfc, int(call.given["cable_len"])))


def _pfc(call: _Call) -> None:
    flags = [bool(flag) for flag in _eight(call, "pfc", "PFC", 0, 1)]
    call.set(lambda: call.hw.set_pfc(call.netdev, flags, None))


def _dscp(call: _Call) -> None:
    """Entries are set one by one; removing them does nothing here and says nothing."""
    for item in call.dscps:
        verb, *numbers = item.split(",")
        if verb == "set":
            dscp, priority = (int(number) if number.isdigit() else -1 for number in [*numbers, "", ""][:2])
            if not (0 <= dscp < _DSCPS and 0 <= priority < PRIORITIES):
                raise _StopError
            call.set(lambda dscp=dscp, priority=priority: call.hw.set_dscp(call.netdev, dscp, priority))  # type: ignore[misc]


def _trust(call: _Call) -> None:
    """Trusting DSCP maps all of them to DSCP >> 3; trusting PCP removes the map."""
    wanted = call.given["trust"]
    if wanted not in ("dscp", "pcp"):
        raise _StopError(f"{wanted} is not a trust state\n")
    table = {dscp: dscp >> 3 for dscp in range(_DSCPS)} if wanted == "dscp" else {}
    call.set(lambda: call.hw.set_dscp_map(call.netdev, table))


def _buffers(call: _Call) -> None:
    """Of two options only the first is applied."""
    port = call.hw.port(call.netdev)
    if "buffer_size" in call.given:
        sizes = _eight(call, "buffer_size", "buffer_size", 0, 2**31)
        call.set(lambda: call.hw.set_buffer(call.netdev, list(port.prio_buffer), sizes))
    else:
        prio_buffer = _eight(call, "prio2buffer", "prio2buffer", 0, PRIORITIES - 1)
        call.set(lambda: call.hw.set_buffer(call.netdev, prio_buffer, list(port.buffer_size)))


def _ets(call: _Call) -> None:
    old = call.hw.port(call.netdev).ets
    ets = replace(old, tsa=list(old.tsa), bw=list(old.bw), prio_tc=list(old.prio_tc))
    if "prio_tc" in call.given:
        ets.prio_tc = _eight(call, "prio_tc", "prio_tc", 0, PRIORITIES - 1)
    if "tsa" in call.given:
        ets.tsa = call.given["tsa"].split(",")
    if "tcbw" in call.given:
        ets.bw = _eight(call, "tcbw", "tcbw", 0, 100)
    if len(ets.tsa) != PRIORITIES or not set(ets.tsa) <= {"ets", "strict", "vendor"}:
        raise _StopError("tsa list must have 8 items\n")
    if any(share and tsa != "ets" for tsa, share in zip(ets.tsa, ets.bw, strict=True)):
        raise _StopError("ETS BW for a strict/vendor TC must be 0\n")
    call.set(lambda: call.hw.set_ets(call.netdev, ets))
    call.given = {"interface": call.netdev}  # all of ETS is one request


_ORDER: dict[str, Callable[[_Call], None]] = {
    "dcbx": _dcbx,
    "cable_len": _cable,
    "pfc": _pfc,
    "dscp2prio": _dscp,
    "trust": _trust,
    "buffer_size": _buffers,
    "prio2buffer": _buffers,
    "prio_tc": _ets,
    "tsa": _ets,
    "tcbw": _ets,
}
