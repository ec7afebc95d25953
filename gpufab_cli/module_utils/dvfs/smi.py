"""The nvidia-smi backend: GPUs read by its CSV queries, set by its options.

Where nvidia-smi cannot do something it says so and still exits 0: "... is not supported ... Treating as warning and
moving on". Its CSV writes bus ids with eight digits of domain in upper case, and "[N/A]" or "[Not Supported]" where
the GPU has no such value (man nvidia-smi; observed with R535 to R570).
"""

import re
from functools import lru_cache
from typing import Any, Dict, Iterable, List, Optional, Tuple, Union

from ..change import ABSENT, Absent, Unknown
from ..host import Host, HostError, Output, Reader
from .seen import GpuSeen

TOOL = "nvidia-smi"
FIELDS = (
    "pci.bus_id",
    "name",
    "persistence_mode",
    "power.limit",
    "enforced.power.limit",
    "power.default_limit",
    "power.min_limit",
    "power.max_limit",
    "clocks.gr",
    "ecc.mode.current",
    "ecc.mode.pending",
    "mig.mode.current",
    "mig.mode.pending",
)
REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")
"""The field's name since R535, and the one before."""
CSV = "--format=csv,noheader,nounits"
CLOCK_FIELDS = "gpu_bus_id,memory,graphics"

LOST = "[GPU is lost]"
NO_RELEASE = "printed what no known release prints"
_LACKS = frozenset({"[N/A]", "N/A", "[Not Supported]"})
_FLAGS = {"Enabled": True, "Disabled": False}
_CLOCKS = re.compile(r" *([0-9A-Fa-f:.]+), *([0-9]{1,6})(?: MHz)?, *([0-9]{1,6})(?: MHz)? *")
_IGNORED = re.compile(r"not supported|treating as warning|persistence mode is disabled", re.IGNORECASE)

Rows = Union[Dict[str, Tuple[str, ...]], Unknown]
Lost = Dict[str, str]


@lru_cache(maxsize=64)  # asked for each of the thousands of clocks that eight GPUs offer
def bus_id(text: str) -> str:
    """A bus id as nvidia-smi writes it → the PCI address as sysfs does: 00000000:1B:00.0 → 0000:1b:00.0."""
    domain, _, rest = text.strip().lower().partition(":")
    return f"{int(domain, 16):04x}:{rest}" if re.fullmatch(r"[0-9a-f]{1,8}", domain) else text


def read(host: Reader, wanted: Iterable[str], *, clocks: bool) -> Tuple[Union[Dict[str, GpuSeen], Unknown], Lost]:
    """The wanted GPUs by PCI address, and what is said of those that the driver does not reach.

    Args:
        host: the node.
        wanted: PCI addresses.
        clocks: whether to ask which clocks can be locked; that answer is long.
    """
    found = _query(host, "", ",".join(FIELDS))
    lost: Lost = {}
    if isinstance(found, Output):  # one GPU that is lost makes the whole call fail: ask for each on its own
        found, lost = _one_by_one(host, wanted, found)
    if isinstance(found, Unknown):
        return found, {}
    for pci in [pci for pci, cells in found.items() if LOST in cells]:
        lost[pci] = LOST
        del found[pci]
    reasons = _reasons(host, found, alone=bool(lost))
    supported = _clocks(host, found, alone=bool(lost)) if clocks else {}
    untold = "[N/A]" if reasons is None else "no clock event reasons of this GPU"
    gpus = {}
    for pci in wanted:
        if pci in found:
            gpus[pci] = _gpu(found[pci], (reasons or {}).get(pci, untold), supported, pci)
        else:
            lost.setdefault(pci, "nvidia-smi does not list it")
    return gpus, lost


def _query(host: Reader, pci: str, fields: str) -> Union[Rows, Output]:
    """Rows by PCI address; the output itself when nvidia-smi ended with an error."""
    selector = ("-i", pci) if pci else ()
    output = host.query(TOOL, *selector, f"--query-gpu={fields}", CSV)
    if isinstance(output, Unknown) or output.rc != 0:
        return output
    return _rows(output, fields.count(",") + 1)


def _rows(output: Output, width: int) -> Rows:
    rows = [tuple(cell.strip() for cell in line.split(",")) for line in output.stdout.splitlines() if line.strip()]
    if any(len(row) != width for row in rows) or output.whole != output.stdout:
        return Unknown(f"{TOOL}: {NO_RELEASE}")
    return {bus_id(row[0]): row[1:] for row in rows}


def _one_by_one(host: Reader, wanted: Iterable[str], failed: Output) -> Tuple[Rows, Lost]:
    rows: Dict[str, Tuple[str, ...]] = {}
    lost: Lost = {}
    for pci in wanted:
        answer = _query(host, pci, ",".join(FIELDS))
        if isinstance(answer, Output):
            lost[pci] = answer.error
        elif isinstance(answer, Unknown):
            return answer, {}
        else:
            rows.update(answer)
    return (rows, lost) if rows else (Unknown(f"{TOOL}: {failed.error}"), {})


def _reasons(host: Reader, found: Iterable[str], *, alone: bool) -> Optional[Dict[str, str]]:
    """The clock event reasons of each GPU, one by one where some are lost; None where neither name of them is known."""
    for field in REASONS:
        answers = [_query(host, pci, f"pci.bus_id,{field}") for pci in (found if alone else ("",))]
        if not all(isinstance(answer, Output) for answer in answers):
            return {pci: cells[0] for rows in answers if isinstance(rows, dict) for pci, cells in rows.items()}
    return None


Supported = Union[Dict[str, Dict[int, List[int]]], Unknown]


def _clocks(host: Reader, found: Iterable[str], *, alone: bool) -> Supported:
    """The graphics clocks that each GPU offers, by memory clock; asked for one by one where some are lost."""
    clocks: Dict[str, Dict[int, List[int]]] = {}
    for pci in found if alone else ("",):
        selector = ("-i", pci) if pci else ()
        output = host.query(TOOL, *selector, f"--query-supported-clocks={CLOCK_FIELDS}", CSV)
        if isinstance(output, Unknown):
            return output
        if output.rc != 0 or not output.whole.strip() or not _take_clocks(clocks, output.whole):
            return Unknown(f"{TOOL}: {output.error if output.rc else NO_RELEASE}")
    return clocks


def _take_clocks(clocks: Dict[str, Dict[int, List[int]]], text: str) -> bool:
    """Note the clocks of some lines; whether they could be understood."""
    for line in text.splitlines():
        match = _CLOCKS.fullmatch(line)
        if match:
            clocks.setdefault(bus_id(match[1]), {}).setdefault(int(match[2]), []).append(int(match[3]))
        elif line.strip() and not any(word in line for word in _LACKS):
            return False
    return True


def _gpu(cells: Tuple[str, ...], reasons: str, supported: Supported, pci: str) -> GpuSeen:
    name, persistence, limit, enforced, default, low, high, graphics, ecc, ecc_next, mig, mig_next = cells
    memory_clocks, graphics_clocks = _supported(supported, pci)
    return GpuSeen(
        name=name,
        persistence=_flag(persistence),
        power_limit_w=_number(limit),
        power_enforced_w=_number(enforced),
        power_default_w=_number(default),
        power_min_w=_number(low),
        power_max_w=_number(high),
        graphics_now_mhz=_integer(graphics),
        ecc=_flag(ecc),
        ecc_pending=_flag(ecc_next),
        mig=_flag(mig),
        mig_pending=_flag(mig_next),
        throttle=_bits(reasons),
        memory_clocks_mhz=memory_clocks,
        graphics_clocks_mhz=graphics_clocks,
    )


def _supported(supported: Supported, pci: str) -> Tuple[Any, Any]:
    """Memory and graphics clocks; the latter are all those that some memory clock goes with."""
    if isinstance(supported, Unknown):
        return supported, supported
    by_memory = supported.get(pci)
    if not by_memory:
        return ABSENT, ABSENT
    return tuple(sorted(by_memory)), tuple(sorted({clock for clocks in by_memory.values() for clock in clocks}))


def _flag(cell: str) -> Union[bool, Absent, Unknown]:
    if cell in _LACKS:
        return ABSENT
    return _FLAGS[cell] if cell in _FLAGS else Unknown(f"{TOOL}: {cell}")


def _number(cell: str) -> Union[float, Absent, Unknown]:
    if cell in _LACKS:
        return ABSENT
    match = re.fullmatch(r"([0-9]{1,6}(?:\.[0-9]{1,6})?)(?: W)?", cell)
    return float(match[1]) if match else Unknown(f"{TOOL}: {cell}")


def _integer(cell: str) -> Union[int, Absent, Unknown]:
    value = _number(cell.replace(" MHz", ""))
    return int(value) if isinstance(value, float) else value


def _bits(cell: str) -> Union[int, Absent, Unknown]:
    if cell in _LACKS:
        return ABSENT
    return int(cell, 16) if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", cell) else Unknown(f"{TOOL}: {cell}")


class SmiSetter:
    """Sets one GPU at a time. Each method raises HostError, also where nvidia-smi warns and exits 0."""

    def __init__(self, host: Host) -> None:
        self._host = host

    def _run(self, pci: str, *words: str) -> None:
        output = self._host.run(TOOL, "-i", pci, *words)
        ignored = next((line for line in output.stdout.splitlines() if _IGNORED.search(line)), None)
        if ignored is not None:
            raise HostError(f"{TOOL} -i {pci} {' '.join(words)}: {ignored.strip()}")

    def persistence(self, pci: str, on: bool) -> None:
        """Persistence mode; through nvidia-persistenced where that runs."""
        self._host.run(TOOL, "-i", pci, "-pm", "1" if on else "0")

    def power_limit(self, pci: str, watts: float) -> None:
        """The power limit."""
        self._run(pci, "-pl", f"{watts:g}")

    def graphics(self, pci: str, clocks: Optional[Tuple[int, ...]]) -> None:
        """Lock the graphics clock, or unlock it."""
        self._lock(pci, "gc", clocks)

    def memory(self, pci: str, clocks: Optional[Tuple[int, ...]]) -> None:
        """Lock the memory clock, or unlock it."""
        self._lock(pci, "mc", clocks)

    def _lock(self, pci: str, which: str, clocks: Optional[Tuple[int, ...]]) -> None:
        """Where locking is not supported, nothing is locked: unlocking has nothing to do."""
        if clocks:
            self._run(pci, f"-l{which}", ",".join(map(str, clocks)))
        else:
            self._host.run(TOOL, "-i", pci, f"-r{which}")

    def ecc(self, pci: str, on: bool) -> None:
        """ECC from the next GPU reset on."""
        self._run(pci, "-e", "1" if on else "0")

    def mig(self, pci: str, on: bool) -> None:
        """Multi-instance mode: at once on Hopper and later, from the next GPU reset on before."""
        self._run(pci, "-mig", "1" if on else "0")
