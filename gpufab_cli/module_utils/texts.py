"""What programs and kernel files print, taken with suspicion: it may be coloured, cut, garbled or endless."""

import json
import math
import re
from typing import Any, Optional

_COLOUR = re.compile(r"\x1b\[[0-?]*[ -/]*[@-~]")
"""A control sequence of a terminal (ECMA-48, 5.4)."""

_DIGITS = 19
"""Enough for a counter of 64 bits; Python refuses to convert thousands of digits."""


def plain(raw: bytes) -> str:
    """The text of what a program printed, without colours: some vendor tools colour a pipe as well."""
    return _COLOUR.sub("", raw.decode("utf-8", "replace"))


def whole_lines(text: str) -> str:
    """A text up to the end of its last whole line: what stands in half a line is not what was meant to stand there."""
    return text[: text.rfind("\n") + 1]


def natural(text: object) -> Optional[int]:
    """The decimal number that a text is and nothing else; None when it is none, or more than a counter holds."""
    if isinstance(text, str) and len(text) <= _DIGITS and re.fullmatch("[0-9]+", text):
        return int(text)
    return None


NESTING = 64
"""No tool, record or snapshot comes near so many levels; a thousand would end whoever walks through them."""
_WHOLE = 24
"""Characters of a whole number: the largest of 64 bits has 20."""


def parse_json(text: str, nesting: int = NESTING) -> Any:
    """JSON as RFC 8259 has it, without infinities, of whole numbers that a counter can hold.

    Args:
        text: what was read.
        nesting: how many levels of lists and objects it may have.

    Raises:
        ValueError: it is none, nested too deeply, or has a number that no computer's counter holds.
    """
    try:
        data = json.loads(text, parse_constant=_no_number, parse_int=_whole, parse_float=_finite)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    level = [data] if isinstance(data, (dict, list)) else []
    for _ in range(nesting):
        inner = (child for item in level for child in (item.values() if isinstance(item, dict) else item))
        level = [child for child in inner if isinstance(child, (dict, list))]
        if not level:
            return data
    raise ValueError("nested too deeply")


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no number of JSON")


def _whole(digits: str) -> int:
    if len(digits) > _WHOLE:
        raise ValueError(f"a number of {len(digits)} digits")
    return int(digits)


def _finite(digits: str) -> float:
    found = float(digits)
    if not math.isfinite(found):
        raise ValueError(f"{digits[:_WHOLE]} is too large a number")
    return found


def blame(error: BaseException) -> str:
    """An unexpected exception in a line, with the place it came from."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    file = trace.tb_frame.f_code.co_filename.rpartition("/")[2] if trace is not None else ""
    at = f" at {file}:{trace.tb_lineno}" if trace is not None else ""
    return f"{type(error).__name__}{at}: {error}"
