"""Values as an operator reads them: settings by their names in the field, and of long values only what differs."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from gpufab_cli.fabric.hostlist import fold
from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.roce.want import DSCPS
from gpufab_cli.report import values_dvfs, values_numa

LABELS: Mapping[str, str] = {
    "pause": "global pause",
    "dcbx": "DCBX owner",
    "cable_m": "cable length, m",
    "prio_buffer": "priority's buffer",
    "buffer_bytes": "buffer bytes",
    "trust": "trust",
    "dscp_priority": "DSCP map",
    "pfc": "PFC",
    "prio_tc": "priority's class",
    "tc_tsa": "class's algorithm",
    "tc_bw": "class's share %",
    "ecn_np": "ECN NP",
    "ecn_rp": "ECN RP",
    "cnp_dscp": "CNP DSCP",
    "cnp_priority": "CNP priority",
    "traffic_class": "traffic class",
    "rdma_cm_tos": "RDMA-CM ToS",
    "rdma_cm_mode": "RDMA-CM mode",
    **values_dvfs.LABELS,
    **values_numa.LABELS,
}
"""The settings that have a name of their own; all others go by the last of their path."""


def label(name: str) -> str:
    """What a setting is called."""
    return LABELS.get(values_dvfs.setting(name), name)


def difference(name: str, current: Any, desired: Any) -> str:
    """What would change, as ``now → wanted``."""
    name = values_dvfs.setting(name)
    special = _DIFFERENCES.get(name)
    if special is not None and isinstance(current, tuple) and isinstance(desired, tuple):
        return special(current, desired)
    if name not in LABELS and current is ABSENT:
        return "missing"
    if is_digest(desired) or is_text(desired):
        return "differs"
    return f"{value(name, current)} → {value(name, desired)}"


def value(name: str, item: Any) -> str:
    """One value in full; of a DSCP map only where most of it leads and what does not."""
    name = values_dvfs.setting(name)
    if isinstance(item, Unknown):
        return str(item)
    if item is ABSENT:
        return "unset" if name in LABELS else "absent"
    if is_text(item):
        return f"{len(item.splitlines())} lines"
    if name in _SHOWN:
        return _SHOWN[name](item)
    if name == "dscp_priority":
        return _map_in_short({dscp: str(priority) for dscp, priority in item})
    if name == "pause":
        return " ".join(f"{way} {'on' if on else 'off'}" for way, on in zip(("rx", "tx"), item, strict=True))
    if name in _INDEXED:
        return _by_index(item)
    if isinstance(item, tuple):
        return numbers(item) if all(isinstance(part, int) for part in item) else ",".join(map(str, item))
    return str(item) if item != "" else '""'


def numbers(items: Iterable[int]) -> str:
    """A set of numbers: ``none``, ``3``, ``0-2,5``."""
    return fold(map(str, sorted(items))).strip("[]") or "none"


def is_digest(item: Any) -> bool:
    """Whether a value is a file's digest, which tells an operator nothing."""
    return isinstance(item, str) and item.startswith("sha256:")


def is_text(item: Any) -> bool:
    """Whether a value is what a file holds, which has no place in a cell of a table."""
    return isinstance(item, str) and "\n" in item


def _by_index(items: tuple[Any, ...]) -> str:
    groups: dict[Any, list[int]] = {}
    for index, item in enumerate(items):
        groups.setdefault(item, []).append(index)
    return ", ".join(f"{numbers(indices)}: {item}" for item, indices in groups.items())


def _indexed(current: tuple[Any, ...], desired: tuple[Any, ...]) -> str:
    """Lists of one value for each priority or class: those that differ, equal ones together."""
    groups: dict[tuple[Any, Any], list[int]] = {}
    for index, pair in enumerate(zip(current, desired, strict=True)):
        if pair[0] != pair[1]:
            groups.setdefault(pair, []).append(index)
    return ", ".join(f"{numbers(indices)}: {old} → {new}" for (old, new), indices in groups.items())


def _dscp_map(current: tuple[tuple[int, int], ...], desired: tuple[tuple[int, int], ...]) -> str:
    """The DSCPs that lead elsewhere; a map that is the same for all 64 in short."""
    old, new = _priorities(current), _priorities(desired)
    starts = {old.get(dscp, "unset") for dscp in range(DSCPS)}
    if len(starts) == 1 and len(new) == DSCPS:
        return f"all {DSCPS} {starts.pop()} → {_map_in_short(new)}"
    groups: dict[tuple[str, str], list[int]] = {}
    for dscp in range(DSCPS):
        pair = old.get(dscp, "unset"), new.get(dscp, "unset")
        if pair[0] != pair[1]:
            groups.setdefault(pair, []).append(dscp)
    return ", ".join(f"{numbers(dscps)}: {was} → {becomes}" for (was, becomes), dscps in groups.items())


def _priorities(pairs: tuple[tuple[int, int], ...]) -> dict[int, str]:
    """The priority of each DSCP; some drivers keep several, which are then shown as ``3+4``."""
    found: dict[int, list[str]] = {}
    for dscp, priority in pairs:
        found.setdefault(dscp, []).append(str(priority))
    return {dscp: "+".join(priorities) for dscp, priorities in found.items()}


def _map_in_short(priorities: Mapping[int, str]) -> str:
    """``0, but 26 → 3, 48 → 6``."""
    targets: dict[str, list[int]] = {}
    for dscp, priority in priorities.items():
        targets.setdefault(priority, []).append(dscp)
    if not targets:
        return "unset"
    most = max(targets, key=lambda priority: len(targets[priority]))
    rest = [f"{numbers(dscps)} → {priority}" for priority, dscps in targets.items() if priority != most]
    return most + (f", but {', '.join(rest)}" if rest else "")


_SHOWN = {**values_dvfs.SHOWN, **values_numa.SHOWN}
_INDEXED = ("prio_tc", "tc_tsa", "tc_bw")
_DIFFERENCES: dict[str, Callable[[tuple[Any, ...], tuple[Any, ...]], str]] = {
    "dscp_priority": _dscp_map,
    "irq": values_numa.moved,
    **dict.fromkeys(_INDEXED, _indexed),
}
