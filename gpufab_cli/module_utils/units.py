"""What ``systemctl show`` prints of units: a block each, with lines of NAME=VALUE and an empty line between."""

from typing import Dict, Sequence, Tuple, Union

from .change import Unknown
from .host import Reader
from .queries import ORDERED

Block = Dict[str, str]


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
    """Every unit that systemd knows of and that may come after another, and the units that it comes after."""
    output = host.query("systemctl", "show", "--property=Id,After", *ORDERED)
    if isinstance(output, Unknown):
        return output
    if output.rc != 0:
        return Unknown(f"systemctl show: {output.error}")
    blocks = tuple(_block(text) for text in output.whole.strip("\n").split("\n\n"))
    # A property without a value is not printed; on a node that runs some unit comes after another.
    if not all("Id" in block for block in blocks) or not any("After" in block for block in blocks):
        return Unknown("systemctl show: printed what no known release prints")
    return {block["Id"]: tuple(block.get("After", "").split()) for block in blocks}


def _block(text: str) -> Block:
    return {name: value for name, sign, value in (line.partition("=") for line in text.splitlines()) if sign}
