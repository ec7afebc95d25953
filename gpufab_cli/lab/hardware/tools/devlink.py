"""iproute2's devlink: devices, their versions and the e-switch mode."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from gpufab_cli.lab.hardware import sriov
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.tools.answer import Answer, Request, is_prefix, options

REAL = "/usr/sbin/devlink.real"
_OPTIONS = {"-j": "j", "--json": "j", "-p": "p", "--pretty": "p", "-v": "v", "--verbose": "v"}


@dataclass(frozen=True)
class _Table:
    """What a verb shows: the key of its JSON, the row of a device, and a row in text."""

    key: str
    read: Callable[[Hardware, int], dict[str, Any]]
    text: Callable[[str, dict[str, Any]], str]


def answer(hw: Hardware, request: Request) -> Answer:
    """Answers one call; what only shows help goes to the real program."""
    given, words, unknown = options(request.argv, _OPTIONS)
    if unknown or len(words) < 1 or not is_prefix(words[0], "dev") or "help" in words:
        return Answer(program=REAL)
    verb = words[1] if len(words) > 1 else "show"
    as_json = "j" in given
    if is_prefix(verb, "show"):
        return _for_devices(hw, words[2:], _Table("dev", lambda *_: {}, lambda name, _: name + "\n"), as_json)
    if is_prefix(verb, "info"):
        return _for_devices(hw, words[2:], _Table("info", _info, _info_text), as_json)
    if is_prefix(verb, "eswitch") and words[2:3] in (["show"], ["set"]):
        if not request.is_root:
            return Answer(stderr="kernel answers: Operation not permitted\n", rc=1)
        if words[2] == "set":
            return _set_eswitch(hw, request, words[3:])
        return _for_devices(hw, words[3:], _Table("dev", _eswitch, _eswitch_text), as_json)
    return Answer(stderr=f'Command "{verb}" not found\n', rc=1)


def _for_devices(hw: Hardware, words: list[str], table: _Table, as_json: bool) -> Answer:
    """Prints a table's row of one device, or of all if none is named."""
    handles = [f"pci/{port.pci}" for port in hw.machine.ports]
    if words and words[0] not in handles:
        return Answer(stderr="kernel answers: No such device\n", rc=1)
    rows = {handle: table.read(hw, handles.index(handle)) for handle in (words[:1] or handles)}
    if as_json:
        return Answer(json.dumps({table.key: rows}, separators=(",", ":")) + "\n")
    return Answer("".join(table.text(handle, row) for handle, row in rows.items()))


def _info(hw: Hardware, index: int) -> dict[str, Any]:
    nic = hw.machine.nic
    firmware = {"fw.version": nic.firmware, "fw": nic.firmware}
    return {
        "driver": nic.driver,
        "serial_number": hw.serial(index),
        "versions": {"fixed": {"fw.psid": nic.psid}, "running": firmware, "stored": firmware},
    }


def _info_text(handle: str, row: dict[str, Any]) -> str:
    lines = [f"{handle}:", f"  driver {row['driver']}", f"  serial_number {row['serial_number']}", "  versions:"]
    for group, versions in row["versions"].items():
        lines += [f"      {group}:", *(f"        {name} {version}" for name, version in versions.items())]
    return "\n".join(lines) + "\n"


def _eswitch(hw: Hardware, index: int) -> dict[str, Any]:
    mode = hw.port(hw.machine.ports[index].netdev).sriov.eswitch
    return {"mode": mode, "inline-mode": "none", "encap-mode": "basic"}


def _set_eswitch(hw: Hardware, request: Request, words: list[str]) -> Answer:
    """Changes the mode. The representors that switchdev brings are not emulated."""
    place = next((port for port in hw.machine.ports if words[:1] == [f"pci/{port.pci}"]), None)
    if place is None:
        return Answer(stderr="kernel answers: No such device\n", rc=1)
    if words[1:2] != ["mode"] or words[2:] not in (["legacy"], ["switchdev"]):
        return Answer(stderr="Unknown eswitch mode\n", rc=1)
    try:
        with hw.writes.write("devlink", " ".join(request.argv), alive=request.alive):
            sriov.edit(hw, place, lambda state: setattr(state, "eswitch", words[2]))
    except OSError as error:
        return Answer(stderr=f"kernel answers: {error.strerror}\n", rc=1)
    return Answer()


def _eswitch_text(handle: str, row: dict[str, Any]) -> str:
    return f"{handle}: " + " ".join(f"{name} {value}" for name, value in row.items()) + "\n"
