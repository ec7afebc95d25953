"""What programs and kernel files print, taken with suspicion: it may be coloured, cut, garbled or endless."""

import json
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


def parse_json(text: str) -> Any:
    """Any JSON.

    Raises:
        ValueError: it is none, or nested deeper than Python can follow.
    """
    try:
        return json.loads(text)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error


def blame(error: BaseException) -> str:
    """An unexpected exception in a line, with the place it came from."""
    trace = error.__traceback__
    while trace is not None and trace.tb_next is not None:
        trace = trace.tb_next
    file = trace.tb_frame.f_code.co_filename.rpartition("/")[2] if trace is not None else ""
    at = f" at {file}:{trace.tb_lineno}" if trace is not None else ""
    return f"{type(error).__name__}{at}: {error}"
