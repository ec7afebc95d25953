"""Which hosts OpenSSH's configuration cannot tell apart: ``ssh -G`` need be asked about one of them only.

Of the files that ``ssh -v -G`` says it has read, this takes no more than which ``Host`` lines match a name: what stands
below them is ssh's own to evaluate. And one thing besides, for so sites give each host its address: a ``HostName``
alone below its ``Host`` line. Whatever else could make hosts differ (``Match``, tokens, canonical names, quotes) leaves
it at one question a host.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

_READ = re.compile(r"^debug1: Reading configuration data (.+?)\r?$", re.MULTILINE)
_LINE = re.compile(r"([A-Za-z0-9]+)(?:[ \t]*=[ \t]*|[ \t]+)(\S.*)")
_PLAIN = re.compile(r"[a-z0-9][a-z0-9._:-]*")
"""Names and addresses that ssh takes as they are."""
_QUOTING = frozenset("\"'\\#")
_BLANKS = " \t\r"
"""What ssh leaves out around a line. Python takes more for blanks and for ends of lines than ssh does."""
_TOKENS = frozenset("%$")
_APART = ("hostname", "canonical")
"""How the keywords begin that make of each host something else."""
_UNREAD = frozenset({"controlpath", "proxycommand"})
"""Whose tokens ssh alone sees."""


class _UnclearError(Exception):
    """A line that may tell hosts apart in a way that only ssh knows."""


@dataclass
class _Block:
    """A Host line and what stands below it; what stands above a file's first is for all."""

    patterns: tuple[str, ...] = ("*",)
    lines: list[tuple[str, str]] = field(default_factory=list)

    @property
    def literal(self) -> bool:
        """Whether it names its hosts one by one."""
        return not any(set("*?!") & set(pattern) for pattern in self.patterns)

    @property
    def address(self) -> str:
        """The HostName, where it sets that and nothing else."""
        name, value = self.lines[0] if len(self.lines) == 1 else ("", "")
        return value if name == "hostname" and _PLAIN.fullmatch(value) else ""

    @property
    def tells_apart(self) -> bool:
        """Whether hosts that match it differ all the same."""
        return any(
            name.startswith(_APART) or (_TOKENS & set(value) and name not in _UNREAD) for name, value in self.lines
        )

    def matches(self, name: str) -> bool:
        """ssh_config(5), PATTERNS: one that matches with ! before it undoes the others."""
        denied = any(_fits(pattern[1:], name) for pattern in self.patterns if pattern.startswith("!"))
        return not denied and any(_fits(pattern, name) for pattern in self.patterns)


def _fits(pattern: str, name: str) -> bool:
    wild = re.escape(pattern).replace(r"\*", ".*").replace(r"\?", ".")
    return re.fullmatch(wild, name) is not None


@dataclass(frozen=True)
class Kind:
    """What the configuration makes of a host: the blocks it matches, and the address it gives to this host alone."""

    blocks: frozenset[int]
    address: str


class Configuration:
    """The Host lines of some files of OpenSSH's configuration."""

    def __init__(self, files: Iterable[Path]) -> None:
        self._literal: dict[str, list[int]] = {}
        self._wild: list[int] = []
        self._blocks: list[_Block] = []
        try:
            self._blocks = [block for file in files for block in _parse(file.read_bytes())]
        except (OSError, _UnclearError):
            return
        for number, block in enumerate(self._blocks):
            if block.literal:
                for name in block.patterns:
                    self._literal.setdefault(name, []).append(number)
            else:
                self._wild.append(number)

    @classmethod
    def read_by(cls, said: str) -> "Configuration":
        """Of the files that ``ssh -v`` says it reads."""
        return cls(map(Path, _READ.findall(said)))

    def kind(self, name: str) -> Kind | None:
        """The kind of a host, by the name that ssh is given; None where ssh itself must be asked about it."""
        if not self._blocks or not _PLAIN.fullmatch(name):
            return None
        matching = [*self._literal.get(name, ()), *(n for n in self._wild if self._blocks[n].matches(name))]
        addresses = {number: self._blocks[number].address for number in matching if self._blocks[number].address}
        shared = frozenset(matching) - set(addresses)
        if len(addresses) > 1 or any(self._blocks[number].tells_apart for number in shared):
            return None
        return Kind(shared, *addresses.values() or ("",))


def _parse(content: bytes) -> Sequence[_Block]:
    """The blocks of a file.

    Raises:
        _UnclearError: it has more to tell hosts by than Host lines.
    """
    blocks = [_Block()]
    text = content.decode("ascii", "surrogateescape")
    for line in (line.strip(_BLANKS) for line in text.split("\n")):
        if not line or line.startswith("#"):
            continue
        match = _LINE.fullmatch(line)
        name, value = (match[1].lower(), match[2]) if match else ("", "")
        if name in ("", "match") or (name == "include" and len(blocks) > 1):
            raise _UnclearError(line)
        if name != "host":
            blocks[-1].lines.append((name, value))
        elif _QUOTING & set(value) or not value.replace("\t", " ").isprintable():
            raise _UnclearError(line)
        else:
            blocks.append(_Block(tuple(value.split())))
    return blocks
