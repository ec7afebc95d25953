"""known_hosts files, indexed: paramiko looks through all lines for every host, and a fleet has many of both."""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gpufab_cli.reach.paramiko_import import paramiko


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


def _entries(names: Iterable[str]) -> Iterator[paramiko.hostkeys.HostKeyEntry]:
    for name in names:
        lines: list[str] = []
        with contextlib.suppress(OSError):  # a file that only root may read, say; the ssh program then decides
            lines = Path(name).read_text(encoding="utf-8", errors="replace").splitlines()
        for number, line in enumerate(lines, 1):
            if not line.strip() or line[0] == "#":
                continue
            with contextlib.suppress(paramiko.SSHException, paramiko.hostkeys.InvalidHostKey, ValueError):
                entry = paramiko.hostkeys.HostKeyEntry.from_line(line.strip(), number)
                if entry is not None:
                    yield entry
