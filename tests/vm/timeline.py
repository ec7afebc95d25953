"""What happened when in one boot, in seconds of the kernel's clock, as the journal tells it."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from tests.vm.guest import Guest

# Message ids of systemd, systemd/sd-messages.h.
STARTING = "7d4958e842da4a758f6c1cdc7b36dcc5"
STARTED = "39f53479d3a045ac8e11786248231fbf"
FAILED = "be02cf6855d2428ba40df7e9d022f03d"
_EARLY, _LATE = "gpufab-restore@early.service", "gpufab-restore@late.service"


@dataclass(frozen=True)
class Event:
    """Something that is looked for.

    Attributes:
        unit: the unit that systemd told of; "" for a message of the kernel.
        ids: which of systemd's messages about it.
        text: what a message of the kernel holds.
        last: whether the last such message counts, or the first.
    """

    name: str
    unit: str = ""
    ids: tuple[str, ...] = (STARTED,)
    text: tuple[str, ...] = ()
    last: bool = False


EVENTS = (
    Event("NIC driver", text=("mlx5_core:", "Driver"), last=False),
    Event("renames done", text=(" rail", ": renamed from"), last=True),
    Event("early begun", _EARLY, (STARTING,)),
    Event("early ended", _EARLY, (STARTED, FAILED)),
    Event("network-pre", "network-pre.target"),
    Event("network", "network.target"),
    Event("late begun", _LATE, (STARTING,)),
    Event("late ended", _LATE, (STARTED, FAILED)),
    Event("slurmd", "slurmd.service"),
    Event("sshd", "ssh.service"),
)


def read(guest: Guest) -> dict[str, float]:
    """The second of each event of this boot; one that did not happen is left out."""
    lines = guest.root("journalctl -b -o json --no-pager _TRANSPORT=kernel + _PID=1", timeout=300).splitlines()
    return times(json.loads(line) for line in lines)


def times(entries: Iterable[Mapping[str, Any]]) -> dict[str, float]:
    """The second of each event among a journal's entries."""
    found: dict[str, float] = {}
    for entry in entries:
        second = int(entry["__MONOTONIC_TIMESTAMP"]) / 1e6
        for event in EVENTS:
            if _is(event, entry) and (event.last or event.name not in found):
                found[event.name] = second
    return found


def _is(event: Event, entry: Mapping[str, Any]) -> bool:
    if event.unit:
        return entry.get("UNIT") == event.unit and entry.get("MESSAGE_ID") in event.ids
    message = entry.get("MESSAGE")
    return (
        entry.get("_TRANSPORT") == "kernel" and isinstance(message, str) and all(word in message for word in event.text)
    )


def table(boots: Mapping[str, Mapping[str, float]]) -> str:
    """Boots side by side."""
    width = max(len(event.name) for event in EVENTS)
    head = " " * width + "".join(f"  {name:>12}" for name in boots)
    rows = [head]
    for event in EVENTS:
        cells = (f"{found[event.name]:12.1f}" if event.name in found else f"{'-':>12}" for found in boots.values())
        rows.append(f"{event.name:{width}}" + "".join(f"  {cell}" for cell in cells))
    return "\n".join(rows)
