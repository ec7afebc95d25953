"""GPUDirect RDMA: whether NICs can reach GPU memory, by nvidia_peermem or by DMA-BUF. A module listed is no proof.

nvidia_peermem registers with ib_core by ``ib_register_peer_memory_client``, which only the vendor's ib_core has (NVIDIA
driver README, "GPUDirect RDMA"). A module that uses another's symbols is among that one's holders in sysfs, and goes
when that one is loaded anew. DMA-BUF needs the open kernel modules, which came with driver 515 and CUDA 11.7, Linux
5.12 and an RDMA stack that has ``ib_umem_dmabuf_get``.
"""

import re
from dataclasses import dataclass
from typing import Iterator, Optional, Tuple

from ..change import Absent, Finding, Unknown
from ..host import Reader
from .seen import DriverSeen, Flag, PeermemSeen
from .want import Way

NAME = "nvidia_peermem"
KALLSYMS = "/proc/kallsyms"
REGISTER, DMABUF = "ib_register_peer_memory_client", "ib_umem_dmabuf_get"
DMABUF_KERNEL, DMABUF_DRIVER = (5, 12), 515
_REFUSAL = re.compile(r"nvidia[_-]peermem: (?:disagrees about version of symbol|Unknown symbol) .*")


@dataclass(frozen=True)
class Problem:
    """Why a way is not there; ``unknown``: it may be."""

    code: str
    words: str
    unknown: bool = False


def peermem(host: Reader) -> PeermemSeen:
    """Look at the module and at the symbols of the running kernel."""
    symbols = host.read(KALLSYMS)
    return PeermemSeen(
        version=host.read(f"/sys/module/{NAME}/version"),
        registered=all(host.exists(f"/sys/module/{module}/holders/{NAME}") for module in ("ib_core", "nvidia")),
        peer_memory=_has(symbols, REGISTER),
        dmabuf=_has(symbols, DMABUF),
        refused=tuple(dict.fromkeys(_refusals(host))),
    )


def _has(symbols: object, name: str) -> Flag:
    if not isinstance(symbols, str):
        return Unknown(f"{KALLSYMS}: {symbols}")
    # Two hundred thousand lines: a plain search takes a fiftieth of the time of a regular expression.
    text = symbols + "\n"
    return any(f" {kind} {name}{end}" in text for kind in "tT" for end in "\t\n")


def _refusals(host: Reader) -> Iterator[str]:
    output = host.query("dmesg", "--notime")
    for line in output.stdout.splitlines() if not isinstance(output, Unknown) and output.rc == 0 else ():
        match = _REFUSAL.search(line)
        if match:
            yield match[0]


def findings(way: Way, driver: DriverSeen, seen: PeermemSeen, kernel: str) -> Iterator[Finding]:
    """What is wrong with the way that is wanted; of either, only when neither is there."""
    by_module, by_dmabuf = _by_module(driver, seen), _by_dmabuf(driver, seen, kernel)
    problems = {"peermem": (by_module,), "dmabuf": (by_dmabuf,), "any": (by_module, by_dmabuf)}[way]
    found = [problem for problem in problems if problem is not None]
    if len(found) == len(problems):
        unknown = any(problem.unknown for problem in found)
        yield from (Finding(p.code, ("GPUDirect RDMA",), p.words, unknown=unknown) for p in found)
    elif seen.refused and by_module is not None:
        yield Finding("gpu.peermem-unneeded", ("GPUDirect RDMA",), f"{by_module.words}; DMA-BUF is there")


def _by_module(driver: DriverSeen, seen: PeermemSeen) -> Optional[Problem]:
    if isinstance(seen.version, Unknown):
        return Problem("gpu.peermem-not-loaded", seen.version.reason, unknown=True)
    if isinstance(seen.version, Absent):
        return _not_loaded(seen)
    if seen.version != driver.running:
        words = f"{NAME} is of driver {seen.version}, {driver.running} runs"
        return Problem("gpu.peermem-rebuild", words)
    words = f"{NAME} is loaded, but not registered with the loaded ib_core"
    return None if seen.registered else Problem("gpu.peermem-not-registered", words)


def _not_loaded(seen: PeermemSeen) -> Problem:
    """Built against another ib_core (a symbol of another version), or one that lacks the API, or simply not loaded.

    The last refusal counts: another RDMA stack may have come since the first.
    """
    said = seen.refused[-1] if seen.refused else ""
    if "disagrees" in said or "(err -22)" in said:
        return Problem("gpu.peermem-rebuild", said)
    if seen.peer_memory is False or (said and seen.peer_memory is not True):
        return Problem("gpu.peermem-no-api", said or f"{NAME} is not loaded, and ib_core has no {REGISTER}")
    return Problem("gpu.peermem-not-loaded", f"{NAME} is not loaded")


def _by_dmabuf(driver: DriverSeen, seen: PeermemSeen, kernel: str) -> Optional[Problem]:
    for what in (driver.open_modules, seen.dmabuf, driver.running):
        if isinstance(what, Unknown):
            return Problem("gpu.dmabuf", f"cannot tell whether DMA-BUF is there: {what.reason}", unknown=True)
    release = _numbers(kernel)
    if not release:
        return Problem("gpu.dmabuf", f"cannot tell whether DMA-BUF is there: kernel {kernel!r}", unknown=True)
    lacks = {
        "driver's kernel modules are not the open ones": not driver.open_modules,
        f"driver {driver.running} is older than {DMABUF_DRIVER}": _numbers(str(driver.running))[:1] < (DMABUF_DRIVER,),
        f"kernel {kernel} is older than 5.12": release < DMABUF_KERNEL,
        f"RDMA stack has no {DMABUF}": not seen.dmabuf,
    }
    missing = [words for words, lacking in lacks.items() if lacking]
    return Problem("gpu.dmabuf", "no DMA-BUF: the " + ", the ".join(missing)) if missing else None


def _numbers(version: str) -> Tuple[int, ...]:
    """The first two numbers of a version, such as those of kernel 5.15.0-1039-nvidia."""
    match = re.match(r"([0-9]+)\.([0-9]+)", version)
    return (int(match[1]), int(match[2])) if match else ()
