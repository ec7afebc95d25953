"""iproute2's dcb on the rails. Other devices, help and usage go to the real program, which knows best."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from gpufab_cli.lab.hardware.model import WHOLE_PERCENT, Hardware
from gpufab_cli.lab.hardware.state import PRIORITIES
from gpufab_cli.lab.hardware.tools import dcb_app
from gpufab_cli.lab.hardware.tools.answer import Answer, Request, is_prefix, options
from gpufab_cli.lab.hardware.tools.dcb_usage import USAGE
from gpufab_cli.lab.hardware.tools.dcb_words import (
    Call,
    Field,
    Map,
    RefusedError,
    Words,
    as_json,
    as_text,
    one_of,
    unsigned,
)

REAL = "/usr/sbin/dcb.real"
_OPTIONS = {
    **{f"-{letter}": letter for letter in "fijpsvN"},
    "--force": "f",
    "--iec": "i",
    "--json": "j",
    "--pretty": "p",
    "--statistics": "s",
    "--verbose": "v",
    "--Numeric": "N",
}
_LAST = PRIORITIES - 1
_TSA = ("strict", "cbs", "ets", "vendor")
_NOTHING = [0] * PRIORITIES
_LONGEST_CABLE_M = 65535  # what fits the netlink field


def answer(hw: Hardware, request: Request) -> Answer:
    """Answers one call, or all those of a batch on stdin."""
    batch = next((place for place, word in enumerate(request.argv) if word in ("-b", "--batch")), None)
    if batch is not None and request.argv[batch + 1 :] == ("-",):
        given, words, unknown = options(request.argv[:batch], _OPTIONS)
        return Answer(program=REAL) if words or unknown else _batch(hw, request, given)
    given, words, unknown = options(request.argv, _OPTIONS)
    target = _target(hw, words) if not unknown else None
    return Answer(program=REAL) if target is None else _answer(hw, request, given, words, target)


def _batch(hw: Hardware, request: Request, given: set[str]) -> Answer:
    """Line by line (iproute2 lib/utils.c, do_batch). One JSON writer for all: a comma before each further object."""
    printed: list[str] = []
    errors = ""
    for number, line in enumerate(request.stdin.split("\n"), 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        target = _target(hw, words)
        said = _elsewhere(hw, words) if target is None else _answer(hw, request, given, words, target)
        printed += [said.stdout.rstrip("\n")] if said.stdout.strip() else []
        errors += said.stderr
        if said.rc:
            errors += f"Command failed -:{number}\n"
            if "f" not in given:
                break
    stdout = ",".join(printed) + "\n" if "j" in given else "".join(f"{text}\n" for text in printed)
    return Answer(stdout, errors, int("Command failed" in errors))


def _elsewhere(hw: Hardware, words: list[str]) -> Answer:
    """What dcb says of a device without DCB, of one that is not there, and of objects that it does not know."""
    if not any(is_prefix(words[0], kind) for kind, _ in _ACTIONS):
        return Answer(stderr=f'Object "{words[0]}" is unknown\n', rc=1)
    known = "".join(words[3:4]) in hw.live().names()
    return Answer(stderr=f"Attribute read: {'Operation not supported' if known else 'No such device'}\n", rc=1)


def _answer(hw: Hardware, request: Request, given: set[str], words: list[str], target: tuple[str, str, str]) -> Answer:
    kind, verb, netdev = target
    action = _ACTIONS[kind, verb]
    call = Call(hw, request, netdev, Words(words[4:], USAGE.get((kind, verb), "")), frozenset(given))
    blank = "\n" if "j" in given else ""
    try:
        return Answer(stdout=action(call) or blank)
    except RefusedError as refused:
        return Answer(stdout=blank, stderr=refused.stderr, rc=refused.rc)


def _target(hw: Hardware, words: list[str]) -> tuple[str, str, str] | None:
    """Object, verb and rail of a call; None when it is the real program's."""
    place = hw.place("".join(words[3:4]))
    if not is_prefix("".join(words[2:3]), "dev") or place is None or not hw.machine.is_ethernet(place):
        return None
    for kind, verb in _ACTIONS:
        if is_prefix(words[0], kind) and is_prefix(words[1], verb):
            return kind, verb, words[3]
    return None


def _shown(call: Call, fields: list[Field]) -> str:
    """The fields asked for, all if none was named."""
    chosen: list[Field] = []
    while call.words:
        name = call.words.keyword(field.name for field in fields)
        chosen += [replace(field, line=len(chosen)) for field in fields if field.name == name]
    chosen = chosen or fields
    if "j" in call.given:
        return as_json({field.name.replace("-", "_"): field.value for field in chosen}, "p" in call.given)
    return as_text(chosen)


# ---- pfc -------------------------------------------------------------------------------------------------------------


def _pfc_show(call: Call) -> str:
    port = call.hw.port(call.netdev)
    fields = [
        Field("pfc-cap", PRIORITIES, 0),
        Field("macsec-bypass", False, 0),
        Field("delay", port.pfc_delay, 0),
        Field("prio-pfc", port.pfc, 1),
    ]
    if "s" in call.given:
        fields += [Field("requests", _NOTHING, 2), Field("indications", _NOTHING, 3)]
    return _shown(call, fields)


def _pfc_set(call: Call) -> str:
    port = call.hw.port(call.netdev)
    pfc, delay = list(port.pfc), None
    mapping = Map("PRIO", "PFC", _LAST, 1)

    def put(key: str, value: str) -> None:
        wanted = one_of("PFC", ("off", "on"), value) == "on"
        for priority in mapping.keys(key):
            pfc[priority] = wanted

    while call.words:
        word = call.words.keyword(("prio-pfc", "macsec-bypass", "delay"))
        if word == "prio-pfc":
            call.words.mapping("Invalid pfc mapping", put)
        elif word == "macsec-bypass":
            one_of("macsec-bypass", ("off", "on"), call.words.value())  # mlx5 ignores it
        else:
            delay = _delay(call.words.value())
    call.writing(lambda: call.hw.set_pfc(call.netdev, pfc, delay))
    return ""


def _delay(word: str) -> int:
    number = unsigned(word)
    if number is None or number > _LONGEST_CABLE_M:
        raise RefusedError(f"Invalid delay `{word}', expected an integer 0..{_LONGEST_CABLE_M}\n")
    return number


# ---- ets -------------------------------------------------------------------------------------------------------------


def _ets_show(call: Call) -> str:
    ets = call.hw.port(call.netdev).ets
    values: list[tuple[str, Any]] = [
        ("tc-bw", ets.bw),
        ("pg-bw", _NOTHING),
        ("tc-tsa", ets.tsa),
        ("prio-tc", ets.prio_tc),
        ("reco-tc-bw", _NOTHING),
        ("reco-tc-tsa", ["strict"] * PRIORITIES),
        ("reco-prio-tc", _NOTHING),
    ]
    head = [Field("willing", False, 0), Field("ets-cap", PRIORITIES, 0), Field("cbs", False, 0)]
    return _shown(call, [*head, *(Field(name, value, line) for line, (name, value) in enumerate(values, 1))])


def _ets_set(call: Call) -> str:
    old = call.hw.port(call.netdev).ets
    ets = replace(old, tsa=list(old.tsa), bw=list(old.bw), prio_tc=list(old.prio_tc))
    classes, shares = Map("TC", "TSA", _LAST, 0), Map("TC", "BW", _LAST, WHOLE_PERCENT)
    priorities = Map("PRIO", "TC", _LAST, _LAST)

    def put_tsa(key: str, value: str) -> None:
        tsa = one_of("TSA", _TSA, value)
        for tc in classes.keys(key):
            ets.tsa[tc] = tsa

    def put_bw(key: str, value: str) -> None:
        for tc in shares.keys(key):
            ets.bw[tc] = shares.number(value)

    def put_tc(key: str, value: str) -> None:
        for priority in priorities.keys(key):
            ets.prio_tc[priority] = priorities.number(value)

    puts = {"tc-tsa": put_tsa, "tc-bw": put_bw, "prio-tc": put_tc}
    while call.words:
        word = call.words.keyword((*puts, "willing"))
        if word == "willing":
            one_of("willing", ("off", "on"), call.words.value())  # mlx5 ignores it
        else:
            call.words.mapping(f"Invalid {word} mapping", puts[word])
    _check_shares(ets.bw, "ets" in ets.tsa)
    call.writing(lambda: call.hw.set_ets(call.netdev, ets))
    return ""


def _check_shares(shares: list[int], has_ets: bool) -> None:
    """dcb itself refuses shares that do not add up; all-strict may also have none."""
    total = sum(shares)
    if total != WHOLE_PERCENT and (has_ets or total != 0):
        expected = WHOLE_PERCENT if has_ets else 0
        raise RefusedError(f"Bandwidth percentages in tc-bw sum to {total}%, expected {expected}%\n")


# ---- buffer ----------------------------------------------------------------------------------------------------------


def _size(size: int) -> str:
    """Bytes as iproute2 prints them: in Mb or Kb of 1024 where that is nearly whole."""
    for unit, name, slack in ((1024 * 1024, "Mb", 1024), (1024, "Kb", 16)):
        whole = round(size / unit)
        if size >= unit and abs(whole * unit - size) < slack:
            return f"{whole}{name}"
    return f"{size}b"


def _buffer_show(call: Call) -> str:
    port = call.hw.port(call.netdev)
    return _shown(
        call,
        [
            Field("prio-buffer", port.prio_buffer, 0),
            Field("buffer-size", port.buffer_size, 1, _size),
            Field("total-size", call.hw.machine.nic.buffer_bytes, 2, _size),
        ],
    )


def _buffer_set(call: Call) -> str:
    port = call.hw.port(call.netdev)
    by_priority, sizes = list(port.prio_buffer), list(port.buffer_size)
    priorities, buffers = Map("PRIO", "BUFFER", _LAST, _LAST), Map("BUFFER", "SIZE", _LAST, 2**32 - 1)

    def put_priority(key: str, value: str) -> None:
        for priority in priorities.keys(key):
            by_priority[priority] = priorities.number(value)

    def put_size(key: str, value: str) -> None:
        for buffer in buffers.keys(key):
            sizes[buffer] = buffers.number(value)

    while call.words:
        if call.words.keyword(("prio-buffer", "buffer-size")) == "prio-buffer":
            call.words.mapping("Invalid priority mapping", put_priority)
        else:
            call.words.mapping("Invalid buffer mapping", put_size)
    call.writing(lambda: call.hw.set_buffer(call.netdev, by_priority, sizes))
    return ""


# ---- dcbx, apptrust --------------------------------------------------------------------------------------------------


def _dcbx_show(call: Call) -> str:
    flags = call.hw.port(call.netdev).dcbx
    if "j" in call.given:
        return as_json(dict.fromkeys(flags, True), "p" in call.given)
    return "".join(f"{flag} " for flag in flags) + "\n"


def _dcbx_set(call: Call) -> str:
    flags = []
    while call.words:
        flags.append(call.words.keyword(("host", "lld-managed", "cee", "ieee", "static")))
    if "lld-managed" in flags or "host" not in flags:
        raise RefusedError("Attribute write: Unknown error -1\n")
    call.writing(lambda: call.hw.change(call.netdev, lambda port: setattr(port, "dcbx", flags)))
    return ""


def _apptrust_show(_: Call) -> str:
    """mlx5 has no trust object of its own: trust follows the app table."""
    raise RefusedError("Attribute read: Operation not supported\n")


def _apptrust_set(_: Call) -> str:
    raise RefusedError("Attribute write: Operation not supported\n")


_Action = Callable[[Call], str]
# Tried in this order, so that a word cut short means what it means to dcb.
_ACTIONS: dict[tuple[str, str], _Action] = {
    ("app", "show"): dcb_app.show,
    ("app", "flush"): dcb_app.flush,
    ("app", "add"): dcb_app.add,
    ("app", "del"): dcb_app.delete,
    ("app", "replace"): dcb_app.replace,
    ("buffer", "show"): _buffer_show,
    ("buffer", "set"): _buffer_set,
    ("dcbx", "show"): _dcbx_show,
    ("dcbx", "set"): _dcbx_set,
    ("ets", "show"): _ets_show,
    ("ets", "set"): _ets_set,
    ("pfc", "show"): _pfc_show,
    ("pfc", "set"): _pfc_set,
    ("apptrust", "show"): _apptrust_show,
    ("apptrust", "set"): _apptrust_set,
}
