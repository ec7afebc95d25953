"""Ranges as people write them for racks of equal machines: ``gpu[001-032]``, ``10.0.0.[11-42]``, ``0-7``."""

import itertools
import math
import re
from dataclasses import dataclass

MAX_HOSTS = 100_000  # far more than any fabric has; a slip such as [1-1000000000] must not fill the memory

_GROUP = re.compile(r"\[([^\[\]]*)\]")
_SPAN = re.compile(r"([0-9]{1,9})(?:-([0-9]{1,9}))?")


def count(text: str) -> int:
    """Count the strings that a pattern stands for, without writing them out.

    Raises:
        ValueError: a bracket without its partner, or a range that is empty or runs backwards.
    """
    pieces = _GROUP.split(text)
    if any(char in piece for piece in pieces[::2] for char in "[]"):
        raise ValueError(f"{text!r} has an unpaired bracket")
    return math.prod(sum(map(len, _spans(piece))) for piece in pieces[1::2])


def expand(text: str) -> tuple[str, ...]:
    """All strings a pattern stands for, in order; leading zeros are kept, several brackets multiply.

    ``gpu[01-03,07]`` is gpu01 gpu02 gpu03 gpu07.

    Raises:
        ValueError: a bracket without its partner, a range that is empty or runs backwards, or too many strings.
    """
    if count(text) > MAX_HOSTS:
        raise ValueError(f"{text!r} is more than {MAX_HOSTS} hosts")
    pieces = _GROUP.split(text)
    options = [_numbers(piece) if index % 2 else (piece,) for index, piece in enumerate(pieces)]
    return tuple("".join(parts) for parts in itertools.product(*options))


def numbers(text: str) -> tuple[int, ...]:
    """The numbers of ``0-7`` or ``0-3,6``.

    Raises:
        ValueError: as :func:`expand`.
    """
    if sum(map(len, _spans(text))) > MAX_HOSTS:
        raise ValueError(f"{text!r} is more than {MAX_HOSTS} numbers")
    return tuple(int(item) for item in _numbers(text))


def _numbers(text: str) -> tuple[str, ...]:
    """Write out all numbers of one bracket."""
    return tuple(str(number).zfill(span.width) for span in _spans(text) for number in span.numbers)


@dataclass(frozen=True)
class _Span:
    """Hold one span as its two ends, so that it is counted before it takes memory."""

    numbers: range
    width: int

    def __len__(self) -> int:
        return len(self.numbers)


def _spans(text: str) -> tuple[_Span, ...]:
    found: list[_Span] = []
    for part in text.split(","):
        match = _SPAN.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"{part!r} is not a number or a range such as 01-32")
        first, last = match[1], match[2] or match[1]
        if int(last) < int(first):
            raise ValueError(f"range {part!r} runs backwards")
        if int(last) - int(first) >= MAX_HOSTS:
            raise ValueError(f"range {part!r} is longer than {MAX_HOSTS}")
        found.append(_Span(range(int(first), int(last) + 1), len(first)))
    return tuple(found)
