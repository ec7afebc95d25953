"""CPU lists as the kernel prints them, such as ``0-55,112-167`` (Documentation/admin-guide/kernel-parameters.rst)."""

import re
from typing import Iterable, List, Set, Tuple


def parse_cpus(text: str) -> Tuple[int, ...]:
    """The CPUs of a list, ascending; "" is none.

    Raises:
        ValueError: it is no list of CPUs.
    """
    found: Set[int] = set()
    for part in text.strip().split(",") if text.strip() else ():
        match = re.fullmatch(r"(\d{1,6})(?:-(\d{1,6}))?", part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first:
            raise ValueError(f"{text!r:.80} is no list of CPUs")
        found.update(range(first, last + 1))
    return tuple(sorted(found))


def format_cpus(cpus: Iterable[int]) -> str:
    """The list of some CPUs, as the kernel writes it."""
    runs: List[List[int]] = []
    for cpu in sorted(set(cpus)):
        if runs and cpu == runs[-1][1] + 1:
            runs[-1][1] = cpu
        else:
            runs.append([cpu, cpu])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)
