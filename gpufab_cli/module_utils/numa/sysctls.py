"""Kernel settings below /proc/sys, and the files of sysctl.d that would set them otherwise.

A setting is named by its path, net/ipv4/conf/bond0.100/arp_ignore: in files, a name whose first separator is a slash is
one too, and in any other dots and slashes change places (sysctl.d(5)).
"""

import fnmatch
import re
from typing import Dict, Iterable, Iterator, List, Optional, Tuple

from ..host import Reader
from .seen import Text

ROOT = "/proc/sys"
NODE = {"balancing": "kernel/numa_balancing", "zone_reclaim": "vm/zone_reclaim_mode"}
"""Settings of the whole node, by what the wish calls them."""
CONF = "net/ipv4/conf"
ARP = ("arp_ignore", "arp_announce", "rp_filter")
"""Of each, the kernel uses the larger of the interface's own value and that of ``all`` (networking/ip-sysctl.rst)."""

FOLDERS = ("/etc/sysctl.d", "/run/sysctl.d", "/usr/local/lib/sysctl.d", "/usr/lib/sysctl.d", "/lib/sysctl.d")
"""A file in one hides those of the same name in the later ones."""
LAST = "/etc/sysctl.conf"

Line = Tuple[str, str, str]


def read(host: Reader, name: str) -> Text:
    """The value of a setting; ABSENT where the kernel has no such thing."""
    return host.read(f"{ROOT}/{name}")


def of_interface(interface: str, name: str) -> str:
    """A setting of an interface, whatever dots its name has."""
    return f"{CONF}/{interface}/{name}"


def contradictions(host: Reader, wanted: Dict[str, str]) -> Tuple[Line, ...]:
    """The lines by which the files set a wanted setting to another value: file, setting, value."""
    lines = list(_lines(host)) if wanted else []
    found: List[Line] = []
    for name, value in wanted.items():
        line = _decides(lines, name)
        if line is not None and line[2] != value:
            found.append((line[0], name, line[2]))
    return tuple(found)


def _lines(host: Reader) -> Iterator[Line]:
    """Every line in the order in which they are read: the last one about a setting holds."""
    files: Dict[str, str] = {}
    for folder in FOLDERS:
        names = host.names(folder)
        for name in names if isinstance(names, tuple) else ():
            if name.endswith(".conf"):
                files.setdefault(name, f"{folder}/{name}")
    for path in [*(files[name] for name in sorted(files)), LAST]:
        yield from _parsed(path, host.read(path))


def _parsed(path: str, text: Text) -> Iterator[Line]:
    for line in text.splitlines() if isinstance(text, str) else ():
        match = re.match(r"\s*(-?)\s*([^\s#;=]+)\s*(?:=\s*(.*?)\s*)?$", line)
        if match and (match[3] is not None or match[1]):
            yield path, _normal(match[2]), match[3] if match[3] is not None else ""


def _normal(name: str) -> str:
    first = re.search(r"[./]", name)
    return name.translate(str.maketrans("./", "/.")) if first and first[0] == "." else name


def _decides(lines: Iterable[Line], name: str) -> Optional[Line]:
    """The line that holds for a setting: the last that names it, else the last pattern that fits."""
    decides = None
    exact = False
    for line in lines:
        if line[1] == name:
            decides, exact = (line if line[2] != "" else None), True
        elif not exact and "*" in line[1] and fnmatch.fnmatchcase(name, line[1]):
            decides = line
    return decides
