"""Which kernel the next boot takes: what the boot loader's default names, else the newest, which GRUB puts first.

Sources: GRUB manual, "Simple configuration" (GRUB_DEFAULT, saved_entry, next_entry) and the ids of Debian's
10_linux; for the RHEL family the names of boot loader entries, MACHINE-KERNEL.
"""

import re
from typing import Dict, Sequence, Union

from ..change import ABSENT, Absent, Unknown
from ..host import Reader
from ..kernel.bootloader import ENTRIES, GRUB_CFG, GRUBENV
from .recipe import natural

DEBIAN_GRUBENV = "/boot/grub/grubenv"
_FIRST = re.compile(r"|0|gnulinux-simple-\S+|Ubuntu|Debian GNU/Linux")
"""Names of the first entry of the menu, which starts the newest kernel."""
_NAMED = re.compile(r"gnulinux-(\S+)-advanced-\S+|.*, with Linux (\S+)")
"""Those of an entry of the submenu."""


def next_kernel(host: Reader) -> Union[str, Absent, Unknown]:
    """Its release; ABSENT where /boot holds no kernel, as on nodes booted by network."""
    names = host.names("/boot")
    if isinstance(names, Unknown):
        return names
    kernels = [name[8:] for name in (names if isinstance(names, tuple) else ()) if name.startswith("vmlinuz-")]
    kernels = [name for name in kernels if "rescue" not in name]
    if not kernels:
        return ABSENT
    text = host.read(GRUBENV)
    if isinstance(text, Unknown):
        return text
    saved = _saved(str(text))
    entry = saved.get("next_entry") or saved.get("saved_entry", "")
    return _of_menu(host, kernels) if entry in ("", "0") else _of_entry(host, entry, kernels)


def _saved(text: str) -> Dict[str, str]:
    return dict(re.findall(r"^(next_entry|saved_entry)=(.+)$", text, re.MULTILINE))


def _of_entry(host: Reader, entry: str, kernels: Sequence[str]) -> Union[str, Unknown]:
    """Of a boot loader entry by its id, MACHINE-KERNEL; for one that is gone GRUB takes the first."""
    named = re.fullmatch(r"[0-9a-f]{32}-(\S+)", entry)
    if named and named[1] in kernels:
        return named[1]
    gone = named is not None and not host.exists(f"{ENTRIES}/{entry}.conf")
    return max(kernels, key=natural) if gone else Unknown(f"GRUB's default is {entry!r}")


def _of_menu(host: Reader, kernels: Sequence[str]) -> Union[str, Unknown]:
    default = _default(host)
    if isinstance(default, Unknown):
        return default
    if _FIRST.fullmatch(default):
        return max(kernels, key=natural)
    named = _NAMED.fullmatch(default.rpartition(">")[2])
    found = (named[1] or named[2]) if named else ""
    return found if found in kernels else Unknown(f"GRUB's default is {default!r}")


def _default(host: Reader) -> Union[str, Unknown]:
    """What the generated menu starts; "" where it says nothing, or where there is none."""
    text = host.read(GRUB_CFG)
    if not isinstance(text, str):
        return text if isinstance(text, Unknown) else ""
    values = re.findall(r'^\s*set default="([^"]*)"', text, re.MULTILINE)
    saved = _saved(str(host.read(DEBIAN_GRUBENV)))
    if "${next_entry}" in values and "next_entry" in saved:
        return saved["next_entry"]
    own = [value for value in values if value != "${next_entry}"]
    return saved.get("saved_entry", "") if own[-1:] == ["${saved_entry}"] else "".join(own[-1:])
