"""What else decides on the limits of logins: others' entries for pam_limits, the PAM stack of sshd, Slurm."""

import re
from typing import Iterator, Set, Tuple, Union

from ..change import Absent, Unknown
from ..host import Reader
from ..texts import natural
from .files import LOGINS, UNLIMITED

CONF, FOLDER = "/etc/security/limits.conf", "/etc/security/limits.d"
PAM = "/etc/pam.d"
SLURM = "/etc/slurm/slurm.conf"
EVERYBODY = ("*", "root")
_ENTRY = re.compile(
    r"^[ \t]*([^\s#]+)[ \t]+(?:soft|hard|-)[ \t]+memlock[ \t]+([^\s#]+)[ \t]*(?:#.*)?$", re.MULTILINE | re.IGNORECASE
)
_INCLUDE = re.compile(r"^\s*(?:@include|-?session\s+(?:include|substack))\s+(\S+)", re.MULTILINE)
_MODULE = re.compile(r"^\s*-?session\s.*\bpam_limits\.so\b", re.MULTILINE)
_PROPAGATE = re.compile(r"^\s*PropagateResourceLimits(Except)?\s*=\s*(\S+)", re.MULTILINE | re.IGNORECASE)


def entries(host: Reader) -> Iterator[Tuple[str, str, str]]:
    """Entries that outweigh gpufab's: about a user or a group, or read after it (pam_limits(8), limits.conf(5))."""
    names = host.names(FOLDER)
    files = [CONF, *(f"{FOLDER}/{name}" for name in (names if isinstance(names, tuple) else ()))]
    for path in files:
        text = host.read(path) if path == CONF or path.endswith(".conf") else ""
        for whom, value in _ENTRY.findall(text if isinstance(text, str) else ""):
            if path != LOGINS and (whom not in EVERYBODY or (path != CONF and path > LOGINS)):
                yield path, whom, _value(value)


def _value(text: str) -> str:
    """The limit as the kernel tells it; the file has KiB."""
    number = natural(text)
    if number is not None:
        return str(number * 1024)
    return UNLIMITED if text in (UNLIMITED, "infinity", "-1") else text


def pam(host: Reader) -> Union[bool, Absent, Unknown]:
    """Whether pam_limits is in the session stack of sshd, or in what that includes."""
    seen: Set[str] = set()
    queue = ["sshd"]
    found: Union[bool, Absent, Unknown] = False
    while queue:
        name = queue.pop()
        seen.add(name)
        text = host.read(f"{PAM}/{name}")
        if not isinstance(text, str):
            found = text if name == "sshd" or isinstance(text, Unknown) else found
            continue
        if _MODULE.search(text):
            return True
        queue += [other for other in _INCLUDE.findall(text) if other not in seen]
    return found


def slurm_propagates(host: Reader) -> bool:
    """Whether slurm.conf leaves it at the default: a job has the soft limits of the shell that submits it."""
    text = host.read(SLURM)
    if not isinstance(text, str):
        return False
    for exception, words in _PROPAGATE.findall(text):
        listed = {"MEMLOCK", "ALL"} & set(words.upper().split(","))
        if bool(exception) == bool(listed):
            return False
    return True
