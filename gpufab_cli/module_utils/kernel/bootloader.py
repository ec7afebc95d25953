"""The command line of the next boot: GRUB's generated menu, or boot loader specification (BLS) entries.

Debian and Ubuntu generate /boot/grub/grub.cfg from /etc/default/grub and its drop-ins; the RHEL family keeps one BLS
file a kernel, which ``grubby`` edits.
"""

import re
from collections import Counter
from typing import Dict, Iterable, Iterator, List, Literal, Tuple, Union

from ..change import Absent, Unknown
from ..host import Host, Reader

ENTRIES = "/boot/loader/entries"
GRUB_CFG = "/boot/grub/grub.cfg"
GRUBENV = "/boot/grub2/grubenv"
DROP_IN = "/etc/default/grub.d/90-gpufab.cfg"
GRUB_SECONDS = 120.0
_BEFORE, _SEMICOLON = "$GRUB_CMDLINE_LINUX ", "\\\\;"
_PLAIN = re.compile(r"[A-Za-z0-9_.,:=/@+%~^!-]+")
"""Arguments that come through grubby as they are: it is a shell script that has sed write them."""

Loader = Literal["grub", "bls", "none"]
Lines = Union[Tuple[Tuple[str, ...], ...], Unknown]


def loader(host: Reader) -> Loader:
    """How the next boot's command line is kept: bls, grub or none."""
    if _entries(host):
        return "bls"
    return "grub" if host.exists(GRUB_CFG) else "none"


def next_lines(host: Reader) -> Lines:
    """The arguments of every kernel that the menu offers, rescue kernels aside."""
    kind = loader(host)
    if kind == "none":
        return Unknown("neither a GRUB menu nor boot loader entries below /boot")
    lines = _bls(host) if kind == "bls" else _grub(host)
    return lines if isinstance(lines, Unknown) or lines else Unknown("the boot menu holds no kernel")


def _entries(host: Reader, *, rescue: bool = False) -> List[str]:
    names = host.names(ENTRIES)
    found = names if isinstance(names, tuple) else ()
    return [name for name in found if name.endswith(".conf") and (rescue or "rescue" not in name)]


def _bls(host: Reader) -> Lines:
    lines: List[Tuple[str, ...]] = []
    for name in _entries(host):
        text = host.read(f"{ENTRIES}/{name}")
        if not isinstance(text, str):
            return Unknown(str(text))
        lines.append(_options(host, text))
    return tuple(lines)


def _options(host: Reader, entry: str) -> Tuple[str, ...]:
    options = " ".join(re.findall(r"^options[ \t]+(.*)$", entry, re.MULTILINE))
    return tuple(options.replace("$kernelopts", _kernelopts(host)).split())


def kernels_with(host: Reader, arguments: Iterable[str]) -> Dict[str, Tuple[str, ...]]:
    """The BLS kernels that have each argument which some have and some lack, as grubby names them."""
    kernels = dict(_kernels(host))
    having = {word: tuple(kernel for kernel, line in kernels.items() if word in line) for word in arguments}
    return {word: found for word, found in having.items() if 0 < len(found) < len(kernels)}


def garbled(host: Reader, names: Iterable[str]) -> Tuple[str, ...]:
    """Of names of arguments, those that no BLS kernel can be given: grubby would garble what there is of the name."""
    wanted, lines = set(names), _kernels(host, rescue=True)
    odd = (name_of(word) for _, line in lines for word in line if not _PLAIN.fullmatch(word))
    return tuple(sorted(wanted.intersection(odd)))


def _kernels(host: Reader, *, rescue: bool = False) -> Iterator[Tuple[str, Tuple[str, ...]]]:
    """Each kernel's path, /boot before its file name whatever is mounted there, and its arguments."""
    for name in _entries(host, rescue=rescue):
        entry = str(host.read(f"{ENTRIES}/{name}"))
        match = re.search(r"^linux[ \t]+\S*?([^/\s]+)[ \t]*$", entry, re.MULTILINE)
        if match:
            yield f"/boot/{match[1]}", _options(host, entry)


def _kernelopts(host: Reader) -> str:
    match = re.search(r"^kernelopts=(.*)$", str(host.read(GRUBENV)), re.MULTILINE)
    return match.group(1) if match else ""


def _grub(host: Reader) -> Lines:
    text = host.read(GRUB_CFG)
    if not isinstance(text, str):
        return Unknown(str(text))
    lines = re.findall(r"^\s*linux\S*\s+\S*vmlinuz\S*[ \t]*(.*)$", text, re.MULTILINE)
    return tuple(tuple(re.sub(r"[\"'\\]", "", line).split()) for line in lines)  # GRUB passes no quoting on


def drop_in(arguments: Iterable[str]) -> str:
    """The text of gpufab's file of GRUB defaults, which update-grub reads as shell after /etc/default/grub.

    A semicolon ends a command of GRUB's, so that the menu needs a backslash before it, and the shell one more.
    """
    line = " ".join(arguments).replace(";", _SEMICOLON)
    return f'# Kept by gpufab: changes made here are reverted.\nGRUB_CMDLINE_LINUX="{_BEFORE}{line}"\n'


def words(text: Union[str, Absent, Unknown]) -> Tuple[str, ...]:
    """The arguments in gpufab's file."""
    match = re.search(f'"{re.escape(_BEFORE)}(.*)"', text) if isinstance(text, str) else None
    return tuple(match[1].replace(_SEMICOLON, ";").split()) if match else ()


def set_grub(host: Host, text: Union[str, Absent]) -> None:
    """Write or remove the drop-in and generate the menu anew."""
    if isinstance(text, Absent):
        host.remove(DROP_IN)
    else:
        host.put(DROP_IN, text.encode())
    host.run("update-grub", seconds=GRUB_SECONDS)


def add_bls(host: Host, arguments: Iterable[str]) -> None:
    """Add arguments to every kernel's entry, and to those of kernels to come.

    grubby puts an argument in the place of all of its name (grubby-bls, update_args), such as another ``console=``:
    what a kernel has of the name is given again, before it.
    """
    new: Dict[str, Tuple[str, ...]] = {}
    for word in arguments:
        new[name_of(word)] = (*new.get(name_of(word), ()), word)
    for name, words in new.items():
        wanted = {kernel: tuple(dict.fromkeys((*had, *words))) for kernel, had in _named(host, name).items()}
        _settle(host, wanted or {"": words}, ())


def take_bls(host: Host, argument: str, kept: Iterable[str] = ()) -> None:
    """Take an argument away from every kernel but some, and what else there is of its name from none.

    From the entries of kernels to come it goes where none keeps it.
    """
    spared, there = set(kept), _named(host, name_of(argument))
    rest = {kernel: tuple(word for word in had if word != argument) for kernel, had in there.items()}
    if not spared:
        _settle(host, rest or {"": ()}, (argument,))
        return
    for kernel, had in there.items():
        if kernel not in spared and argument in had:
            _put(host, kernel, rest[kernel], (argument,))


def name_of(argument: str) -> str:
    """What stands before its first equals sign."""
    return argument.partition("=")[0]


def _named(host: Reader, name: str) -> Dict[str, Tuple[str, ...]]:
    """What each kernel has of one name; of one with several entries, which grubby cannot tell apart, what any has.

    Rescue kernels are not asked for anything, but grubby's ALL are they too.
    """
    found: Dict[str, Tuple[str, ...]] = {}
    for kernel, line in _kernels(host, rescue=True):
        own = (word for word in line if name_of(word) == name)
        found[kernel] = tuple(dict.fromkeys((*found.get(kernel, ()), *own)))
    return found


def _settle(host: Host, wanted: Dict[str, Tuple[str, ...]], gone: Tuple[str, ...]) -> None:
    """Give each kernel these arguments of one name: what most have to all at once, which is for those to come too."""
    (most, _), *_ = Counter(wanted.values()).most_common(1)
    _put(host, "ALL", most, gone)
    for kernel, words in wanted.items():
        if words != most:
            _put(host, kernel, words, (*most, *gone))


def _put(host: Host, kernel: str, words: Tuple[str, ...], gone: Tuple[str, ...]) -> None:
    """Give a kernel these arguments of one name and no other; or take away those that are ``gone`` where it is none."""
    what = f"--args={' '.join(words)}" if words else f"--remove-args={' '.join(gone)}"
    host.run("grubby", f"--update-kernel={kernel}", what)
