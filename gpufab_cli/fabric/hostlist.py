"""Many names in short: gpu01 gpu02 gpu03 gpu07 is gpu[01-03,07]. What :func:`.spec.ranges.expand` unfolds again."""

import re
from collections.abc import Iterable, Sequence

_LAST_NUMBER = re.compile(r"([^0-9]*)([0-9]+)(.*)", re.DOTALL)
"""Of a name that is read from its end: so the time that it takes does not grow with the square of the length."""

_DIGITS = 18
"""A longer number is a text: Python refuses to convert thousands of digits."""


def fold(names: Iterable[str]) -> str:
    """The names, those that differ in their last number folded; in the order of the first of each."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name in dict.fromkeys(names):
        match = _LAST_NUMBER.fullmatch(name[::-1])
        tail, number, head = (part[::-1] for part in match.groups()) if match else ("", "", name)
        if len(number) > _DIGITS:
            head, number, tail = name, "", ""
        groups.setdefault((head, tail), []).append(number)
    return ",".join(f"{head}{_numbers(numbers)}{tail}" for (head, tail), numbers in groups.items())


def _numbers(numbers: Sequence[str]) -> str:
    if len(numbers) == 1:
        return numbers[0]
    runs: list[list[str]] = []
    for number in sorted(numbers, key=lambda text: (int(text), len(text))):
        if runs and number == str(int(runs[-1][-1]) + 1).zfill(len(runs[-1][0])):
            runs[-1].append(number)
        else:
            runs.append([number])
    return "[" + ",".join(run[0] if len(run) == 1 else f"{run[0]}-{run[-1]}" for run in runs) + "]"
