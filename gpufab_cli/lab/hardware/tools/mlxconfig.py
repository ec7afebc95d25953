"""mlxconfig and mstconfig: firmware parameters of a card, as printed by mstflint's mlxcfg_ui.cpp."""

import re
from dataclasses import dataclass

from gpufab_cli.lab.hardware import sriov
from gpufab_cli.lab.hardware.cards import Parameter
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.tools.answer import Answer, Request
from gpufab_cli.lab.machine import PortPlace

_REFUSED_RC = 3
_OPEN = Answer("-E- Failed to open the device\n", rc=_REFUSED_RC)
_NAME, _CELL = 48, 34
_ELEMENT = re.compile(r"([A-Z0-9_]+)\[(\d+)\]")
_GATE = "ADVANCED_PCI_SETTINGS"


@dataclass
class _Call:
    """The words of a call, sorted."""

    device: str = ""
    enhanced: bool = False
    yes: bool = False
    verb: str = ""
    rest: tuple[str, ...] = ()


def answer(hw: Hardware, request: Request) -> Answer:
    """Answers one call."""
    call = _parse(request.argv)
    place = next((port for port in hw.machine.ports if call.device in (port.pci, port.pci.removeprefix("0000:"))), None)
    if place is None or not request.is_root or hw.state.fault("nic-locked-down", place.netdev):
        return _OPEN
    if call.verb in ("q", "query"):
        return _query(hw, place, call)
    if call.verb in ("s", "set"):
        return _set(hw, place, request, call)
    return Answer(f"-E- Unknown command: {call.verb}\n", rc=_REFUSED_RC)


def _parse(argv: tuple[str, ...]) -> _Call:
    call, words = _Call(), list(argv)
    while words:
        word = words.pop(0)
        if word in ("-d", "--dev"):
            call.device = words.pop(0) if words else ""
        elif word in ("-e", "--enable_verbosity"):
            call.enhanced = True
        elif word in ("-y", "--yes"):
            call.yes = True
        else:
            call.verb, call.rest = word, tuple(words)
            break
    return call


def _kinds(hw: Hardware, place: PortPlace) -> dict[str, Parameter]:
    """What the card shows: some parameters only once the gate is current."""
    opened = sriov.running(hw, place, _GATE)
    return {name: kind for name, kind in sriov.kinds(hw, place).items() if opened or not kind.hidden}


def _query(hw: Hardware, place: PortPlace, call: _Call) -> Answer:
    kinds = _kinds(hw, place)
    names = call.rest or tuple(kinds)
    unknown = next((name for name in names if name.partition("[")[0] not in kinds), None)
    if unknown:
        return _unknown(unknown)
    columns = ("Default", "Current", "Next Boot") if call.enhanced else ("Next Boot",)
    values = {name: _values(hw, place, name, kinds) for name in names}
    marks = {name: "*" if call.enhanced and len(set(cells)) > 1 else " " for name, cells in values.items()}
    rows = [_row(name, cells[-len(columns) :], marks[name]) for name, cells in values.items()]
    footer = "The '*' shows parameters with next value different from default/current value.\n" if call.enhanced else ""
    return Answer(_header(hw, place, columns) + "".join(rows) + footer)


def _unknown(name: str) -> Answer:
    return Answer(f"-E- The Device doesn't support {name} parameter\n", rc=_REFUSED_RC)


def _values(hw: Hardware, place: PortPlace, name: str, kinds: dict[str, Parameter]) -> tuple[str, ...]:
    """Default, current and next, as printed. Elements of arrays cannot be set here and are all zero."""
    if _ELEMENT.fullmatch(name):
        return ("DEVICE_DEFAULT(0)",) * 3
    kind, card = kinds[name], sriov.card_of(hw, place)
    numbers = (kind.default, card.current.get(name, kind.default), card.next.get(name, kind.default))
    return tuple(map(kind.show, numbers))


def _header(hw: Hardware, place: PortPlace, columns: tuple[str, ...]) -> str:
    nic = hw.machine.nic
    rows = (
        ("Device type:", "ConnectX7"),
        ("Name:", nic.part_number),
        ("Description:", "NVIDIA ConnectX-7 adapter card"),
        ("Device:", place.pci),
    )
    told = "".join(f"{name:<20}{value:<20}\n" for name, value in rows)
    head = f"{'Configurations:':<{_NAME + 8}}" + "".join(f"{column:<{_CELL}}" for column in columns)
    return f"\nDevice #1:\n----------\n\n{told}\n{head}\n"


def _row(name: str, values: tuple[str, ...], mark: str = " ") -> str:
    return f"{mark}{'':7}{name:<{_NAME}}" + "".join(f"{value:<{_CELL}}" for value in values) + "\n"


def _set(hw: Hardware, place: PortPlace, request: Request, call: _Call) -> Answer:
    kinds = _kinds(hw, place)
    wanted: dict[str, int] = {}
    for word in call.rest:
        name, _, text = word.partition("=")
        if name not in kinds or kinds[name].length:
            return _unknown(name)
        value = kinds[name].read(text)
        if value is None:
            return Answer(f"-E- Illegal value {text} for parameter {name}\n", rc=_REFUSED_RC)
        wanted[name] = value
    said = _header(hw, place, ("Next Boot", "New"))
    said += "".join(_row(n, (_values(hw, place, n, kinds)[-1], kinds[n].show(v))) for n, v in wanted.items())
    said += f"\n Apply new Configuration? (y/n) [n] : {'y' if call.yes else ''}\n"
    if not call.yes:
        return Answer(said + "-E- Aborted by user\n", rc=1)
    try:
        with hw.writes.write(request.tool, " ".join(request.argv), alive=request.alive):
            hw.change(place.netdev, lambda _: sriov.card_of(hw, place).next.update(wanted))
    except OSError:
        return Answer(said + "Applying... Failed!\n-E- Failed to set configuration\n", rc=_REFUSED_RC)
    return Answer(said + "Applying... Done!\n-I- Please reboot machine to load new configurations.\n")
