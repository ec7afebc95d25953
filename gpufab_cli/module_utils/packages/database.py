"""The package databases, read without a tool that could write: dpkg's as its file, rpm's by rpm -qa.

dpkg: deb-control(5) stanzas of /var/lib/dpkg/status. A journal in /var/lib/dpkg/updates is one that dpkg did not get
to put in there. Locks are told from /proc/locks: to try one would be to take it.
"""

import re
from dataclasses import dataclass
from typing import Callable, Dict, Iterator, Optional, Tuple, Union

from ..change import Unknown
from ..host import Reader
from .files import VERSIONLOCK
from .platforms import Platform
from .seen import Database, Package

STATUS, JOURNAL = "/var/lib/dpkg/status", "/var/lib/dpkg/updates"
DPKG_LOCKS = ("/var/lib/dpkg/lock-frontend", "/var/lib/dpkg/lock")
RPM_LOCKS = ("/var/lib/rpm/.rpm.lock",)
DNF_PID = "/var/lib/dnf/rpmdb_lock.pid"
RPM_FORMAT = r"%{NAME} %{EPOCHNUM}:%{VERSION}-%{RELEASE}\n"
_GONE = ("not-installed", "config-files")
_DONE = ("installed", *_GONE)
_ARCHITECTURES = {"x86_64": "amd64", "sbsa": "arm64"}
"""What dpkg calls the architectures of platforms."""

Matters = Callable[[str, str], bool]


def look(host: Reader, platform: Platform, matters: Matters) -> Union[Database, Unknown]:
    """The database; ``matters`` says of a name and a version whether the package is of interest."""
    return _rpm(host, matters) if platform.manager == "dnf" else _dpkg(host, platform, matters)


def installed(host: Reader, platform: Platform) -> Dict[str, str]:
    """The version of every package that is there, half done or not; empty where that cannot be told."""
    if platform.manager == "apt":
        text = host.read(STATUS)
        stanzas = _stanzas(text, platform) if isinstance(text, str) else iter(())
        return {stanza.name: stanza.version for stanza in stanzas if stanza.native and stanza.state not in _GONE}
    found = look(host, platform, lambda name, version: True)  # noqa: ARG005
    return {} if isinstance(found, Unknown) else {name: package.version for name, package in found.packages.items()}


def _dpkg(host: Reader, platform: Platform, matters: Matters) -> Union[Database, Unknown]:
    text, journal = host.read(STATUS), host.names(JOURNAL)
    if not isinstance(text, str):
        return Unknown(f"{STATUS}: {text}")
    packages: Dict[str, Package] = {}
    broken = {"dpkg": "interrupted"} if isinstance(journal, tuple) and journal else {}
    stanzas = tuple(_stanzas(text, platform))
    if not stanzas:
        return Unknown(f"{STATUS}: no package in it")
    for stanza in stanzas:
        if stanza.state not in _DONE or stanza.error != "ok":
            broken[stanza.label] = stanza.state + ("" if stanza.error == "ok" else " and must be reinstalled")
        if stanza.native and stanza.state not in _GONE and matters(stanza.name, stanza.version):
            packages[stanza.name] = Package(stanza.version, stanza.wanted == "hold", stanza.label not in broken)
    return Database(packages, broken, _locker(host, DPKG_LOCKS))


_FIELD = re.compile(r"^(Package|Architecture|Status|Version): (.*)$", re.MULTILINE)


@dataclass(frozen=True)
class _Stanza:
    """A package of one architecture. A foreign one may be there besides, at another version or half done."""

    name: str
    architecture: str
    native: bool
    wanted: str
    error: str
    state: str
    version: str

    @property
    def label(self) -> str:
        """What apt calls it."""
        return self.name if self.native else f"{self.name}:{self.architecture}"


def _stanzas(text: str, platform: Platform) -> Iterator[_Stanza]:
    for stanza in text.split("\n\n"):
        found = dict(_FIELD.findall(stanza))
        words = found.get("Status", "").split()
        if "Package" in found and len(words) == 3:  # noqa: PLR2004 (selection, error flag, state)
            architecture = found.get("Architecture", "all")
            native = architecture in ("all", _ARCHITECTURES[platform.arch])
            wanted, error, state = words
            yield _Stanza(found["Package"], architecture, native, wanted, error, state, found.get("Version", ""))


def _rpm(host: Reader, matters: Matters) -> Union[Database, Unknown]:
    output = host.query("rpm", "-qa", "--qf", RPM_FORMAT)
    if isinstance(output, Unknown) or output.rc != 0:
        return output if isinstance(output, Unknown) else Unknown(f"rpm: {output.error}")
    packages = {}
    rows = [line.partition(" ") for line in output.stdout.splitlines()]
    if not rows or not all(name and version for name, _, version in rows):
        return Unknown("rpm -qa: printed what no known release prints")
    for name, _, version in rows:
        bare = version[2:] if version.startswith("0:") else version
        if matters(name, bare):
            packages[name] = Package(bare)
    return Database(packages, {}, _dnf_holder(host) or _locker(host, RPM_LOCKS), dict(_foreign_locks(host)))


def _foreign_locks(host: Reader) -> Iterator[Tuple[str, str]]:
    """Names and versions that others have locked: lines outside of gpufab's own blocks."""
    text = host.read(VERSIONLOCK)
    others = re.sub(r"^# gpufab-\w+ begin.*?^# gpufab-\w+ end$", "", str(text), flags=re.MULTILINE | re.DOTALL)
    yield from re.findall(r"^([A-Za-z0-9][^\s]*?)-(\d+:[^\s-]+-[^\s-]+)$", others, re.MULTILINE)


def _dnf_holder(host: Reader) -> str:
    pid = host.read(DNF_PID)
    name = host.read(f"/proc/{pid}/comm") if isinstance(pid, str) and pid.isdigit() else None
    return f"{name} (process {pid})" if isinstance(name, str) else ""


def _locker(host: Reader, paths: Tuple[str, ...]) -> str:
    """Who holds a lock on one of the files; "" if nobody does."""
    inodes = {host.inode(path) for path in paths}
    table = host.read("/proc/locks")
    for line in table.splitlines() if isinstance(table, str) else ():
        match = re.search(r" WRITE +(-?\d+) +[0-9a-f]+:[0-9a-f]+:(\d+) ", line)
        if match and int(match[2]) in inodes:
            return _named(host, match[1])
    return ""


def _named(host: Reader, pid: str) -> str:
    name: Optional[object] = host.read(f"/proc/{pid}/comm")
    return f"{name} (process {pid})" if isinstance(name, str) else "a process"
