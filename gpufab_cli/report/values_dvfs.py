"""Clocks and power as an operator reads them."""

from collections.abc import Callable, Mapping
from typing import Any

LABELS: Mapping[str, str] = {
    "persistence": "persistence mode",
    "power_limit_w": "power limit",
    "graphics_mhz": "locked graphics clock",
    "memory_mhz": "locked memory clock",
    "ecc": "ECC",
    "mig": "MIG",
    "boost": "CPU boost",
    "governor": "CPU governor",
    "epp": "CPU EPP",
    "min_khz": "CPU lowest frequency",
    "max_khz": "CPU highest frequency",
    "latency_us": "CPU idle latency limit",
    "idle_states": "CPU idle states",
    "tuned_profile": "tuned profile",
}


def setting(name: str) -> str:
    """The setting's own name; those of CPUs are all below one path."""
    return name.removeprefix("cpu/")


def _flag(item: Any) -> str:
    return {True: "on", False: "off"}.get(item, str(item))


def _clocks(item: tuple[int, ...]) -> str:
    if not item:
        return "unlocked"
    return f"{item[0]} MHz" if min(item) == max(item) else f"{item[0]}-{item[-1]} MHz"


def _spread(item: tuple[tuple[str, str], ...]) -> str:
    """One value, or each with the CPUs that have it."""
    if len(item) == 1:
        return item[0][0] or "none"
    return ", ".join(f"{value or 'none'} on {cpus}" for value, cpus in item)


SHOWN: Mapping[str, Callable[[Any], str]] = {
    **dict.fromkeys(("persistence", "ecc", "mig", "boost"), _flag),
    **dict.fromkeys(("graphics_mhz", "memory_mhz"), _clocks),
    **dict.fromkeys(("governor", "epp", "idle_states"), _spread),
    "power_limit_w": lambda item: f"{item:g} W",
    "latency_us": lambda item: f"{_spread(item)} µs",
    "min_khz": lambda item: f"{_spread(item)} kHz",
    "max_khz": lambda item: f"{_spread(item)} kHz",
}
"""How a value of each setting is written, when it is known and there."""
