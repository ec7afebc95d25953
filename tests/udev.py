"""As much of udev's rules as gpufab's own use, from udev(7): which units an event starts."""

import fnmatch
import re
from dataclasses import dataclass, field

_TOKEN = re.compile(r'\s*([A-Z]+)(?:\{([^}]*)\})?\s*(==|!=|\+=|=)\s*"([^"]*)"\s*(?:,|$)')
_OF_PARENTS = {"SUBSYSTEMS": "subsystem", "DRIVERS": "driver", "KERNELS": "name"}
_OWN = {"ACTION": "action", "SUBSYSTEM": "subsystem", "KERNEL": "name", "DRIVER": "driver"}


@dataclass
class Device:
    name: str
    subsystem: str
    driver: str = ""
    parent: "Device | None" = None

    def chain(self):
        return [self, *(self.parent.chain() if self.parent else [])]


@dataclass
class Event:
    action: str
    device: Device
    paths: set = field(default_factory=set)
    """What a TEST finds: absolute, or below the device's folder."""


def wanted(rules, event):
    """The units that the rules have systemd start, in their order."""
    lines = rules.replace("\\\n", " ").splitlines()
    found = []
    for line in lines:
        if line.strip() and not line.lstrip().startswith("#"):
            found += _apply(line, event)
    return found


def _tokens(line):
    at = 0
    while line[at:].strip():
        match = _TOKEN.match(line, at)
        assert match, f"not understood: {line[at:]}"
        yield match.groups()
        at = match.end()


def _is(value, pattern):
    return any(fnmatch.fnmatchcase(value, part) for part in pattern.split("|"))


def _apply(line, event):
    """Nothing if the line does not match; parents must match all of their keys at one device."""
    parents, units, tags = {}, [], []
    for key, attribute, operator, value in _tokens(line):
        if key in _OWN:
            own = event.action if key == "ACTION" else getattr(event.device, _OWN[key])
            if _is(own, value) != (operator == "=="):
                return []
        elif key in _OF_PARENTS:
            parents[_OF_PARENTS[key]] = value
        elif key == "TEST":
            if (value in event.paths) != (operator == "=="):
                return []
        elif key == "TAG":
            tags.append(value)
        elif (key, attribute, operator) == ("ENV", "SYSTEMD_WANTS", "+="):
            units.append(value)
        else:
            raise AssertionError(f"unknown key {key}")
    fits = [d for d in event.device.chain() if all(_is(getattr(d, name), value) for name, value in parents.items())]
    if not fits:
        return []
    assert tags == ["systemd"], "systemd would not hear of it"
    return [unit.replace("$id", fits[0].name) for unit in units]
