"""Interrupts, memory and PCI Express as an operator reads them."""

from collections.abc import Callable, Mapping
from typing import Any

from gpufab_cli.module_utils.topology.cpus import format_cpus, parse_cpus

LABELS: Mapping[str, str] = {
    "irq": "interrupts",
    "balancing": "NUMA balancing",
    "zone_reclaim": "zone reclaim",
    "transparent_hugepages": "transparent huge pages",
    "max_read_request": "MaxReadReq",
    "acs": "ACS",
}


def _where(irqs: tuple[tuple[str, str], ...]) -> str:
    """How many, and the CPUs that take them."""
    return f"{len(irqs)} on CPUs {_cpus(irqs)}" if irqs else "none"


def moved(current: tuple[tuple[str, str], ...], desired: tuple[tuple[str, str], ...]) -> str:
    """How many interrupts are not where they are to be."""
    wanted = dict(desired)
    wrong = tuple((number, cpus) for number, cpus in current if wanted.get(number) != cpus)
    place = tuple((number, wanted[number]) for number, _ in wrong if number in wanted)
    return f"{len(wrong)} of {len(current)}: CPUs {_cpus(wrong)} → {_cpus(place)}"


def _cpus(irqs: tuple[tuple[str, str], ...]) -> str:
    try:
        return format_cpus({cpu for _, text in irqs for cpu in parse_cpus(text)}) or "none"
    except ValueError:
        return "unreadable"


def _acs(flags: tuple[str, ...]) -> str:
    return " ".join(f"{name}+" for name in flags) or "all off"


SHOWN: Mapping[str, Callable[[Any], str]] = {
    "irq": _where,
    "acs": _acs,
    "max_read_request": lambda size: f"{size} bytes",
}
"""How a value of each setting is written, when it is known and there."""
