"""known_hosts files, indexed: paramiko looks through all lines for every host, and a fleet has many of both."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import paramiko
from paramiko.hostkeys import HostKeyEntry


class KnownHosts:
    """The host keys of some files, by name. Hashed names can only be tried one by one."""

    def __init__(self, names: Sequence[str]) -> None:
        self._plain: dict[str, list[paramiko.PKey]] = {}
        self._hashed: list[tuple[str, paramiko.PKey]] = []
        for entry in _entries(names):
            for name in entry.hostnames or ():
                if entry.key is None:
                    continue
                if name.startswith("|1|"):
                    self._hashed.append((name, entry.key))
                else:
                    self._plain.setdefault(name, []).append(entry.key)

    def keys(self, name: str) -> tuple[paramiko.PKey, ...]:
        """The keys by which a host is known."""
        hashed = (key for digest, key in self._hashed if paramiko.HostKeys.hash_host(name, digest) == digest)
        return (*self._plain.get(name, ()), *hashed)


def _entries(names: Iterable[str]) -> Iterator[HostKeyEntry]:
    for name in names:
        lines: list[str] = []
        with contextlib.suppress(OSError):  # a file that only root may read, say; the ssh program then decides
            lines = Path(name).read_text(encoding="utf-8", errors="replace").splitlines()
        for number, line in enumerate(lines, 1):
            with contextlib.suppress(paramiko.SSHException, ValueError):
                entry = HostKeyEntry.from_line(line.strip(), number) if line.strip() and line[0] != "#" else None
                if entry is not None:
                    yield entry
