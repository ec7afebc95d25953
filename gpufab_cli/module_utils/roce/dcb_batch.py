"""Many ``dcb -j … show`` by one program, ``dcb -j -f -b -``: an audit of eight ports starts one instead of 32.

Source: iproute2 dcb/dcb.c (one JSON writer for the whole batch), lib/json_writer.c and lib/utils.c (do_batch), the same
in every release since dcb came with 5.11. Each show that succeeds prints one object, with commas between and a newline
after the last. One that fails prints its reason and then ``Command failed -:LINE`` on stderr, lines counted from 1, and
``-f`` goes on to the next.
"""

import json
import re
from typing import Dict, Iterable, List, Mapping, Optional, Sequence, Tuple, Union

from ..change import Unknown
from ..host import Output, Reader
from ..texts import parse_json

Show = Tuple[str, str]
"""An object of dcb and a netdev."""
Answer = Union[Output, Unknown]

_FAILED = re.compile(r"Command failed -:([0-9]{1,4})")


def ask(host: Reader, shows: Sequence[Show]) -> Dict[Show, Answer]:
    """What each show says, as if it had been asked alone; one by one where a batch does not answer for each."""
    output = host.batch([("dcb", "-j", what, "show", "dev", netdev) for what, netdev in shows])
    found = _sorted_out(shows, output) if isinstance(output, Output) else None
    return (
        {(what, dev): host.query("dcb", "-j", what, "show", "dev", dev) for what, dev in shows}
        if found is None
        else found
    )


def _sorted_out(shows: Sequence[Show], output: Output) -> Optional[Dict[Show, Answer]]:
    """Which answer is whose; None unless every show has exactly one."""
    failures = _failures(output.stderr.splitlines())
    try:
        objects = parse_json(f"[{output.stdout}]")
    except ValueError:
        return None
    well = [number for number in range(1, len(shows) + 1) if number not in failures]
    if len(well) != len(objects) or not set(failures) <= set(range(1, len(shows) + 1)):
        return None
    printed = dict(zip(well, objects))
    return {show: _answer(number, printed, failures) for number, show in enumerate(shows, 1)}


def _failures(lines: Iterable[str]) -> Dict[int, str]:
    """The reason of each line that failed: what was said last before its number."""
    found: Dict[int, str] = {}
    said: List[str] = [""]
    for line in lines:
        failed = _FAILED.fullmatch(line)
        if failed:
            found[int(failed[1])] = said[-1]
            said = [""]
        elif line.strip():
            said.append(line)
    return found


def _answer(number: int, printed: Mapping[int, object], failures: Mapping[int, str]) -> Output:
    if number in failures:
        return Output(1, "\n", failures[number] + "\n")
    return Output(0, json.dumps(printed[number]) + "\n", "")
