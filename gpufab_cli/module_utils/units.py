"""What systemd tells of units: ``systemctl show`` a block each, with lines of NAME=VALUE; their order as a graph."""

import re
from typing import Dict, List, Sequence, Tuple, Union

from .change import Unknown
from .host import Reader

Block = Dict[str, str]

_EDGE = re.compile(r'^\t"([^"\n]+)"->"([^"\n]+)" \[color="green"\];$', re.MULTILINE)


def show(
    host: Reader, names: Sequence[str], units: Sequence[str], optional: str = ""
) -> Union[Tuple[Block, ...], Unknown]:
    """Properties of units, in the order of the units; Unknown unless each has all of them.

    Args:
        host: the node.
        names: properties that systemd prints of every unit, also of one that it does not know.
        units: unit names.
        optional: a property that is printed only where it has a value (systemd, systemctl-show.c: Job).
    """
    properties = ",".join([*names, optional] if optional else names)
    output = host.query("systemctl", "show", f"--property={properties}", *units)
    if isinstance(output, Unknown):
        return output
    if output.rc != 0:
        return Unknown(f"systemctl show: {output.error}")
    blocks = tuple(_block(text) for text in output.whole.strip("\n").split("\n\n"))
    if len(blocks) != len(units) or not all(set(names) <= set(block) for block in blocks):
        return Unknown("systemctl show: printed what no known release prints")
    return blocks


def after(host: Reader) -> Union[Dict[str, Tuple[str, ...]], Unknown]:
    """Every unit that comes after others, and these, as ``systemd-analyze dot --order`` prints them.

    ``systemctl show '*'`` says the same, but reads every property of every unit: 27 s on a slow machine, this 2 s.
    """
    output = host.query("systemd-analyze", "dot", "--order")
    if isinstance(output, Unknown):
        return output
    if output.rc != 0:
        return Unknown(f"systemd-analyze dot: {output.error}")
    found: Dict[str, List[str]] = {}
    for unit, earlier in _EDGE.findall(output.whole):
        found.setdefault(unit, []).append(earlier)
    # On a node that runs some unit comes after another, and what was cut off has no end.
    if not found or not output.whole.rstrip().endswith("}"):
        return Unknown("systemd-analyze dot: printed what no known release prints")
    return {unit: tuple(earlier) for unit, earlier in found.items()}


def _block(text: str) -> Block:
    return {name: value for name, sign, value in (line.partition("=") for line in text.splitlines()) if sign}
