"""The grammar that dcb's objects share: words, mappings, tables and the errors they end in."""

import errno
import json
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from gpufab_cli.lab.hardware.model import Hardware, fail
from gpufab_cli.lab.hardware.tools.answer import Request, is_prefix

# iproute2 leaves through exit(-1) where a word is missing.
_INCOMPLETE_RC = 255


class RefusedError(Exception):
    """dcb gives up: what it says on stderr, and its exit status."""

    def __init__(self, stderr: str, rc: int = 1) -> None:
        super().__init__(stderr)
        self.stderr = stderr
        self.rc = rc


class Words:
    """Arguments, taken one after the other."""

    def __init__(self, words: Sequence[str], usage: str) -> None:
        self._words = list(words)
        self._usage = usage

    def __bool__(self) -> bool:
        return bool(self._words)

    def keyword(self, known: Iterable[str]) -> str:
        """Takes a keyword, which may be cut short.

        Raises:
            RefusedError: It is none of the known ones.
        """
        word = self._words.pop(0)
        found = next((full for full in known if is_prefix(word, full)), None)
        if found is None:
            raise RefusedError(f'What is "{word}"?\n{self._usage}')
        return found

    def value(self) -> str:
        """Takes the word after a keyword.

        Raises:
            RefusedError: There is none.
        """
        if not self._words:
            raise RefusedError('Command line is not complete. Try option "help"\n', _INCOMPLETE_RC)
        return self._words.pop(0)

    def mapping(self, complaint: str, put: Callable[[str, str], None]) -> None:
        """Takes all KEY:VALUE words that follow.

        Args:
            complaint: What dcb calls such a mapping when it is wrong.
            put: Takes one pair; says what is wrong with it in a RefusedError.
        """
        if not self._words:
            self.value()
        while self._words and ":" in self._words[0]:
            key, _, value = self._words[0].partition(":")
            try:
                put(key, value)
            except RefusedError as refused:
                raise RefusedError(f"{refused.stderr}{complaint} {key}\n") from None
            self._words.pop(0)

    def numbers(self, complaint: str) -> list[int]:
        """Takes the numbers that follow, of which there must be no other word behind."""
        taken = []
        while self._words:
            number = unsigned(self._words[0])
            if number is None:
                raise RefusedError(f"{complaint} {self._words[0]}\n")
            taken.append(number)
            self._words.pop(0)
        return taken


@dataclass(frozen=True)
class Call:
    """One call on a rail."""

    hw: Hardware
    request: Request
    netdev: str
    words: Words
    given: frozenset[str]

    def writing(self, act: Callable[[], None]) -> None:
        """Makes one netlink write, with its errors as dcb words them."""
        try:
            if not self.request.is_root:
                raise fail(errno.EPERM)
            with self.hw.writes.write("dcb", " ".join(self.request.argv), alive=self.request.alive):
                act()
        except OSError as error:
            raise RefusedError(f"Attribute write: {os.strerror(error.errno or errno.EIO)}\n") from None


def unsigned(word: str) -> int | None:
    """A number as strtoul reads it with base 0."""
    try:
        number = int(word, 8 if word.startswith("0") and word.isdigit() else 0)
    except ValueError:
        return None
    return number if number >= 0 else None


@dataclass(frozen=True)
class Map:
    """A mapping of priorities or classes onto something, KEY_NAME:VALUE_NAME as dcb's messages name it."""

    key_name: str
    value_name: str
    last_key: int
    last_value: int

    def keys(self, key: str) -> list[int]:
        """The indices a key stands for; `all` for every one."""
        if key == "all":
            return list(range(self.last_key + 1))
        number = unsigned(key)
        if number is None:
            raise RefusedError("")
        if number > self.last_key:
            raise self._beyond(self.key_name, self.last_key)
        return [number]

    def number(self, value: str) -> int:
        """A value within its range."""
        number = unsigned(value)
        if number is None:
            raise RefusedError("")
        if number > self.last_value:
            raise self._beyond(self.value_name, self.last_value)
        return number

    def _beyond(self, what: str, last: int) -> RefusedError:
        return RefusedError(f"In {self.key_name}:{self.value_name} mapping, {what} is expected to be 0..{last}\n")


def one_of(what: str, choices: Sequence[str], word: str) -> str:
    """A word out of a fixed choice."""
    if word in choices:
        return word
    listed = ", ".join(f'"{choice}"' for choice in choices)
    raise RefusedError(f'Error: argument of "{what}" must be one of {listed}, not "{word}"\n')


@dataclass(frozen=True)
class Field:
    """One thing dcb shows: a scalar, or eight values by index. `line` groups fields printed on one line of text."""

    name: str
    value: Any
    line: int
    text: Callable[[Any], str] | None = None

    def printed(self) -> str:
        """The field in text, with the space that follows each token."""
        show = self.text or _plain
        if isinstance(self.value, list):
            return f"{self.name} " + "".join(f"{index}:{show(item)} " for index, item in enumerate(self.value))
        return f"{self.name} {show(self.value)} "


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return str(value)


def as_text(fields: Sequence[Field]) -> str:
    """Lines of text."""
    lines: dict[int, str] = {}
    for field in fields:
        lines[field.line] = lines.get(field.line, "") + field.printed()
    return "".join(f"{line}\n" for line in lines.values())


def as_json(value: dict[str, Any], pretty: bool) -> str:
    """JSON as iproute2's writer lays it out, with the line end it always adds."""
    if not pretty:
        return json.dumps(value, separators=(",", ":")) + "\n"
    body = ",\n".join(f"    {json.dumps(key)}: {_pretty(item)}" for key, item in value.items())
    return f"{{\n{body}\n}}\n" if body else "{}\n"


def _pretty(value: Any) -> str:
    """Arrays stay on one line."""
    if isinstance(value, list):
        return f"[ {','.join(_pretty(item) for item in value)} ]"
    return json.dumps(value)
