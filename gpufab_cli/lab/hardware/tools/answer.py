"""What a tool is asked and what it answers."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from gpufab_cli.lab.hardware.model import Hardware


@dataclass(frozen=True)
class Answer:
    """Output and exit status; with `program` the caller runs that program instead, with its own arguments."""

    stdout: str = ""
    stderr: str = ""
    rc: int = 0
    program: str = ""


@dataclass(frozen=True)
class Request:
    """One call of a tool: its arguments without the name, who calls, and what dcb reads on stdin."""

    tool: str
    argv: tuple[str, ...]
    uid: int
    pid: int
    alive: Callable[[], bool] = lambda: True
    stdin: str = ""

    @property
    def is_root(self) -> bool:
        """Whether the caller may change anything."""
        return self.uid == 0


Tool = Callable[[Hardware, Request], Answer]


def is_prefix(word: str, full: str) -> bool:
    """iproute2 takes any beginning of a keyword."""
    return bool(word) and full.startswith(word)


def options(argv: Iterable[str], known: dict[str, str]) -> tuple[set[str], list[str], str]:
    """Splits getopt-style options from the rest.

    Args:
        argv: The arguments.
        known: Every spelling of an option and the letter it means.

    Returns:
        The letters given, the other arguments, and the first unknown option, empty if there is none.
    """
    given: set[str] = set()
    rest: list[str] = []
    for word in argv:
        if not word.startswith("-") or word == "-":
            rest.append(word)
        elif word in known:
            given.add(known[word])
        elif not word.startswith("--") and all(f"-{letter}" in known for letter in word[1:]):
            given.update(known[f"-{letter}"] for letter in word[1:])
        else:
            return given, rest, word
    return given, rest, ""
