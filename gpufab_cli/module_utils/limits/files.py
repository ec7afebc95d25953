"""Files that set the limit of locked memory: one for logins (limits.conf(5)), a drop-in a service (systemd.unit(5))."""

from ..change import Absent, Unknown
from .seen import Limit

LOGINS = "/etc/security/limits.d/90-gpufab-memlock.conf"
UNITS = "/etc/systemd/system"
NAME = "90-gpufab-memlock.conf"
UNLIMITED = "unlimited"
_HEADER = "# Kept by gpufab: changes made here are reverted.\n"
_BYTES = {"M": 2**20, "G": 2**30}


def limit(size: str) -> str:
    """A size of the spec as the kernel tells it: unlimited, or bytes."""
    return size if size == UNLIMITED else str(int(size[:-1]) * _BYTES[size[-1]])


def drop_in(unit: str) -> str:
    """Where a service's drop-in lies."""
    return f"{UNITS}/{unit}.d/{NAME}"


def content(path: str, size: str) -> str:
    """What belongs into the file at a path, without its last newline."""
    return _HEADER + (_logins(limit(size)) if path == LOGINS else _service(size))


def _logins(value: str) -> str:
    """In KiB, for soft and hard alike. A wildcard is not about root, who has a line of its own."""
    shown = value if value == UNLIMITED else str(int(value) // 1024)
    return f"* - memlock {shown}\nroot - memlock {shown}"


def _service(size: str) -> str:
    return f"[Service]\nLimitMEMLOCK={'infinity' if size == UNLIMITED else size}"


def shown(soft: str, hard: str) -> str:
    """A pair of limits as one text."""
    return soft if soft == hard else f"{soft}:{hard}"


def is_(found: Limit, wanted: str) -> bool:
    """Whether a limit that could be read is as wanted; one of nobody is."""
    return isinstance(found, Absent) or (not isinstance(found, Unknown) and found == wanted)
