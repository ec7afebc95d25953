"""How mlnx_qos prints a port, release by release (mlnx-tools, python/mlnx_qos, pretty_print)."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.state import PRIORITIES, Port

_LLDPAD = "****** WARNING: lldpad service is running and may overwrite your settings ******\n\n"
NOTHING_SUPPORTED = (
    "Priority trust state is not supported on your system\n"
    "Buffers commands are not supported on your system\n"
    "Rate limit is not supported on your system!\n"
    "ETS features are not supported on your system\n"
)
_A_LINE = 8  # DSCPs in a line


@dataclass(frozen=True)
class Release:
    """What a release prints otherwise than the newest."""

    dcbx: bool = True
    buffers: bool = True
    total: str = "max_buffer_size"
    default_priority: bool = False
    ordered: bool = True
    rates: bool = True


RELEASES = {
    "current": Release(),
    "2022": Release(total="total_size", default_priority=True, ordered=False),
    "ofed-5": Release(total="", default_priority=True, ordered=False),
    "ofed-4.2": Release(dcbx=False, buffers=False),
    "no-buffers": Release(buffers=False),
    "no-rates": Release(rates=False),
}
FAULT = "mlnx-qos-release"
"""The lab's setting that selects another release than the newest."""


def port(hw: Hardware, netdev: str, *, every_class: bool, lldpad: bool) -> str:
    """The whole state of a port."""
    release = next((found for name, found in RELEASES.items() if hw.state.fault(FAULT, name)), RELEASES["current"])
    state = hw.port(netdev)
    parts = [_LLDPAD] if lldpad else []
    if not release.buffers and release.dcbx:
        parts.append("Buffers commands are not supported on your system\n")
    if not release.rates:
        parts.append("Rate limit is not supported on your system!\n")
    if release.dcbx:
        parts.append(f"DCBX mode: {'OS' if 'host' in state.dcbx else 'Firmware'} controlled\n")
    parts += [*_trust(state, release)]
    if release.buffers:
        total = f"{release.total}={hw.machine.nic.buffer_bytes}" if release.total else ""
        parts.append(f"Receive buffer size (bytes): {''.join(f'{size},' for size in state.buffer_size)}{total}\n")
    parts.append(f"Cable len: {state.pfc_delay}\nPFC configuration:\n")
    parts += [_row("priority", range(PRIORITIES)), _row("enabled", map(int, state.pfc))]
    parts += [_row("buffer", state.prio_buffer)] if release.buffers else []
    return "".join([*parts, *_classes(state, release, every_class)])


def _trust(state: Port, release: Release) -> Iterator[str]:
    yield f"Priority trust state: {'dscp' if state.dscp else 'pcp'}\n"
    if not state.dscp:
        return
    yield "dscp2prio mapping:\n"
    for priority in range(PRIORITIES):
        own = sorted((dscp for dscp, prio in state.dscp.items() if prio == priority), reverse=True)
        for start in range(0, len(own), _A_LINE):
            yield f"\tprio:{priority} dscp:{''.join(f'{dscp:02d},' for dscp in own[start : start + _A_LINE])}\n"
    if release.default_priority:
        yield "default priority:\n"


def _row(name: str, values: "Iterator[int] | range | list[int]") -> str:
    return f"\t{name:<12}" + "".join(f"{value:<4d}" for value in values) + "\n"


def _classes(state: Port, release: Release, every_class: bool) -> Iterator[str]:
    """Classes that own a priority, or all; older releases print them in the order of the priorities."""
    ets, order = state.ets, list(range(PRIORITIES))
    if not release.ordered:
        order = list(dict.fromkeys([*ets.prio_tc, *order]))
    for tc in order:
        owned = [priority for priority in range(PRIORITIES) if ets.prio_tc[priority] == tc]
        if not owned and not every_class:
            continue
        share = f", bw: {ets.bw[tc]}%" if ets.tsa[tc] == "ets" else ""
        yield (f"tc: {tc} ratelimit: unlimited, tsa: " if release.rates else "") + f"{ets.tsa[tc]}{share}\n"
        yield from (f"\t priority:  {priority}\n" for priority in owned)


def lldpad_runs(pid: int) -> bool:
    """Whether the node of a process runs a process of that name."""
    try:
        inside = (Path("/proc") / str(pid) / "ns" / "pid").readlink()
    except OSError:
        return False
    return any(_is_lldpad(process, inside) for process in Path("/proc").glob("[0-9]*"))


def _is_lldpad(process: Path, inside: Path) -> bool:
    try:
        return (process / "comm").read_text() == "lldpad\n" and (process / "ns" / "pid").readlink() == inside
    except OSError:
        return False
