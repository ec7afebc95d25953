"""Which hosts' GPUs are limited lower than those of the others: in a synchronous job the slowest sets the pace."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from gpufab_cli.audit.finding import FabricFinding
from gpufab_cli.module_utils.dvfs import throttle
from gpufab_cli.module_utils.dvfs.seen import DvfsSeen, GpuSeen
from gpufab_cli.module_utils.snapshot import Snapshot

WATT = 1.0  # limits that differ by less are the same: drivers keep milliwatts


@dataclass(frozen=True)
class Limited:
    """One GPU: the limit that is in force, in watts, and why its clocks are not higher."""

    pci: str
    model: str
    watts: float
    reasons: tuple[str, ...]


def limits(snapshot: Snapshot) -> tuple[Limited, ...] | None:
    """The GPUs of a host whose limit is known."""
    seen = snapshot.seen.get("dvfs")
    if not isinstance(seen, DvfsSeen) or not isinstance(seen.gpus, dict):
        return None
    found = (_limited(pci, gpu) for pci, gpu in sorted(seen.gpus.items()))
    return tuple(gpu for gpu in found if gpu is not None) or None


def _limited(pci: str, gpu: GpuSeen) -> Limited | None:
    """The lower of the requested and the enforced limit: drivers and BMCs enforce lower ones than were asked for."""
    watts = [limit for limit in (gpu.power_limit_w, gpu.power_enforced_w) if isinstance(limit, float)]
    if not watts or not isinstance(gpu.name, str):
        return None
    return Limited(pci, gpu.name, min(watts), throttle.words(gpu.throttle) if isinstance(gpu.throttle, int) else ())


def outliers(facts: Mapping[str, tuple[Limited, ...]]) -> Iterator[FabricFinding]:
    """One finding a host whose GPUs are limited lower than most of their model."""
    usual = _usual(facts)
    for host in sorted(facts):
        low = [gpu for gpu in facts[host] if gpu.watts < usual[gpu.model] - WATT]
        if low:
            yield FabricFinding("fabric.power-outlier", (host,), "; ".join(_words(low, usual)))


def _usual(facts: Mapping[str, tuple[Limited, ...]]) -> dict[str, float]:
    """The limit that most GPUs of each model have; of equal camps the higher."""
    counts: dict[str, Counter[float]] = {}
    for gpus in facts.values():
        for gpu in gpus:
            counts.setdefault(gpu.model, Counter())[gpu.watts] += 1
    return {model: max(found, key=lambda watts: (found[watts], watts)) for model, found in counts.items()}


def _words(low: list[Limited], usual: Mapping[str, float]) -> Iterator[str]:
    """GPUs that are limited alike together."""
    groups: dict[tuple[str, float, tuple[str, ...]], list[str]] = {}
    for gpu in low:
        groups.setdefault((gpu.model, gpu.watts, gpu.reasons), []).append(gpu.pci)
    for (model, watts, reasons), pcis in groups.items():
        which = pcis[0] if len(pcis) == 1 else f"{len(pcis)} GPUs"
        why = f", {', '.join(reasons)}" if reasons else ""
        yield f"{which} ({model}) limited to {watts:g} W{why}; most have {usual[model]:g} W"
