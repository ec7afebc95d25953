"""Look at the limits of a node: gpufab's files, what systemd makes of them, and what runs (proc(5), PID/limits)."""

import re
from typing import Dict, Iterator, List, Optional, Union

from ..change import ABSENT, Absent, Unknown
from ..host import Reader
from ..queries import MEMORY_LIMIT
from . import logins
from .files import LOGINS, NAME, UNITS, UNLIMITED, drop_in, shown
from .seen import Limit, LimitsSeen, ServiceSeen
from .want import LimitsWant

SYSTEMD = "/run/systemd/system"
"""Is there while systemd is (sd_booted(3))."""
_LOCKED = re.compile(r"^Max locked memory\s+(\S+)\s+(\S+)", re.MULTILINE)


def gather(host: Reader, want: LimitsWant) -> LimitsSeen:
    """One look."""
    services = _services(host, want) if host.exists(SYSTEMD) else {}
    paths = [LOGINS, *(drop_in(unit) for unit in (services if isinstance(services, dict) else ()))]
    return LimitsSeen(
        files={path: host.read(path) for path in paths},
        strays={path: host.read(path) for path in _strays(host, paths)} if isinstance(services, dict) else {},
        services=services,
        login=_limit(host, "self"),
        entries=tuple(logins.entries(host)),
        pam=logins.pam(host),
        slurm_propagates=logins.slurm_propagates(host),
    )


def _strays(host: Reader, paths: List[str]) -> Iterator[str]:
    names = host.names(UNITS)
    for name in names if isinstance(names, tuple) else ():
        path = f"{UNITS}/{name}/{NAME}"
        if name.endswith(".d") and path not in paths and host.exists(path):
            yield path


def _services(host: Reader, want: LimitsWant) -> Union[Dict[str, ServiceSeen], Unknown]:
    """Those that the node has, by their own names: sshd.service is another name of ssh.service on Debian."""
    found: Dict[str, ServiceSeen] = {}
    for name in want.services:
        shows = _shows(host, f"{name}.service")
        if isinstance(shows, Unknown):
            return shows
        if shows["LoadState"] == "loaded":
            found[shows.get("Id", f"{name}.service")] = _service(host, shows)
    return found


def running(host: Reader, unit: str) -> Limit:
    """What the main process of a unit has now; ABSENT when none runs."""
    shows = _shows(host, unit)
    return shows if isinstance(shows, Unknown) else _service(host, shows).running


def _shows(host: Reader, unit: str) -> Union[Dict[str, str], Unknown]:
    output = host.query("systemctl", "show", MEMORY_LIMIT, unit)
    if isinstance(output, Unknown) or output.rc != 0:
        return output if isinstance(output, Unknown) else Unknown(f"systemctl show: {output.error}")
    shows = dict(line.partition("=")[::2] for line in output.stdout.splitlines())
    return shows if "LoadState" in shows else Unknown("systemctl show: printed what no known release prints")


def _service(host: Reader, shows: Dict[str, str]) -> ServiceSeen:
    pid = shows.get("MainPID", "")
    pair = [_systemd(shows.get(name)) for name in ("LimitMEMLOCKSoft", "LimitMEMLOCK")]
    soft, hard = pair
    told = soft is not None and hard is not None
    return ServiceSeen(
        configured=shown(str(soft), str(hard)) if told else Unknown("systemctl show: no LimitMEMLOCK"),
        running=_running(host, pid),
    )


def _running(host: Reader, pid: str) -> Limit:
    if not pid.isdigit():
        return Unknown("systemctl show: no MainPID")
    return _limit(host, pid) if pid != "0" else ABSENT


def _systemd(value: Optional[str]) -> Optional[str]:
    """A limit of systemd's as the kernel tells it; None when it is not told. Old releases print infinity as 2^64-1."""
    if value in ("infinity", str(2**64 - 1)):
        return UNLIMITED
    return value if value is not None and value.isdigit() else None


def _limit(host: Reader, pid: str) -> Limit:
    """What a process has; ABSENT when it has ended meanwhile."""
    text = host.read(f"/proc/{pid}/limits")
    if not isinstance(text, str):
        return text if isinstance(text, (Absent, Unknown)) else ABSENT
    match = _LOCKED.search(text)
    return shown(match[1], match[2]) if match else Unknown(f"/proc/{pid}/limits: no locked memory")
