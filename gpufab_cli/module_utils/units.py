"""What ``systemctl show`` prints of units: a block each, with lines of NAME=VALUE and an empty line between."""

from typing import Dict, Iterable, List, Sequence, Tuple, Union

from .change import Unknown
from .host import Reader

Block = Dict[str, str]
_STRANGE = "systemctl show: printed what no known release prints"


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
        return Unknown(_STRANGE)
    return blocks


_UNORDERED = (".device", ".scope", ".slice")
"""Kinds of units that no start-up waits behind: they come after nothing, or nothing waits for them."""


def after(host: Reader, units: Iterable[str]) -> Union[Dict[str, Tuple[str, ...]], Unknown]:
    """What some units come after, what these come after, and so on to the first.

    Only these are asked for: systemctl takes seconds to show all units of a node that is slow or has many.
    """
    found: Dict[str, Tuple[str, ...]] = {}
    wave = tuple(dict.fromkeys(units))
    while wave:
        earlier = _after(host, wave)
        if isinstance(earlier, Unknown):
            return earlier
        found.update(zip(wave, earlier))
        new = dict.fromkeys(name for names in earlier for name in names if not name.endswith(_UNORDERED))
        wave = tuple(name for name in new if name not in found)
    # A property without a value is not printed; on a node that runs some unit comes after another.
    return found if any(found.values()) else Unknown(_STRANGE)


def _after(host: Reader, units: Sequence[str]) -> Union[List[Tuple[str, ...]], Unknown]:
    """What each of some units comes after."""
    output = host.query("systemctl", "show", "--property=Id,After", "--", *units)
    if isinstance(output, Unknown):
        return output
    if output.rc != 0:
        return Unknown(f"systemctl show: {output.error}")
    blocks = [_block(text) for text in output.whole.strip("\n").split("\n\n")]
    if len(blocks) != len(units) or not all("Id" in block for block in blocks):
        return Unknown(_STRANGE)
    return [tuple(block.get("After", "").split()) for block in blocks]


def _block(text: str) -> Block:
    return {name: value for name, sign, value in (line.partition("=") for line in text.splitlines()) if sign}
