"""The files that tell NCCL its variables, on the node itself and for jobs in containers.

/etc/nccl.conf (NVIDIA/nccl, param.cc): ``NAME=VALUE`` lines, ``#`` in the first column only, nothing is trimmed or
unquoted, the first line about a name counts, and the environment comes before any file. enroot reads ``*.env`` files of
environ.d, ``NAME=VALUE`` too; Slurm takes ``export NAME=VALUE`` lines from what its task prolog prints
(slurm.conf(5), TaskProlog); ``podman run --env-file`` and the like take ``NAME=VALUE`` again.
"""

import re
from typing import Dict, Iterator, List, Tuple

from ..settings_file import Format
from .seen import OtherFile
from .want import NcclEnvWant

NCCL_CONF = "/etc/nccl.conf"
ENROOT = "/etc/enroot/environ.d/50-gpufab-nccl.env"
TASK_PROLOG = "/etc/slurm/gpufab-task-prolog.sh"
ENV_FILE = "/etc/gpufab/nccl.env"
CONTAINERS: Dict[str, str] = {"enroot": ENROOT, "slurm": TASK_PROLOG, "env-file": ENV_FILE}

_PAIR = r"(?P<name>[A-Za-z_][A-Za-z0-9_]*)=(?P<value>.*)"
_PLAIN = Format("{name}={value}", _PAIR)
_EXPORTS = Format(  # what the job has set itself comes first
    '[ -n "${{{name}+set}}" ] || echo "export {name}={value}"',
    r'\[ -n "\$\{\w+\+set\}" \] \|\| echo "export (?P<name>\w+)=(?P<value>.*)"',
    head=("#!/bin/sh",),
    mode=0o755,
)
_LONGEST_LINE, _LONGEST_VALUE = 4096, 1023
KEPT = 1 << 15
"""Characters that are kept of a file. NCCL has some hundred variables; a user may write anything."""


def form(path: str) -> Format:
    """How the file at a path is written."""
    return _EXPORTS if path == TASK_PROLOG else _PLAIN


def paths(want: NcclEnvWant) -> Tuple[str, ...]:
    """The files that are kept."""
    return (NCCL_CONF, *(CONTAINERS[kind] for kind in want.containers or ()))


def other_file(text: str) -> OtherFile:
    """A file of somebody else's as NCCL reads it."""
    values: Dict[str, str] = {}
    bad: List[str] = []
    left = KEPT
    for number, line in enumerate(text.splitlines(), 1):
        pair = _PLAIN.parse(line)
        is_new = pair is not None and pair[0].startswith("NCCL_") and pair[0] not in values
        wrong = line[:80] if list(bad_words(line)) else ""
        left -= len(wrong) + (len(line) if is_new else 0)
        if left < 0:
            return OtherFile(values, tuple(bad), f"longer than {KEPT} characters: not looked at from line {number}")
        if pair is not None and is_new:
            values[pair[0]] = pair[1]
        bad += [wrong] if wrong else []
    return OtherFile(values, tuple(bad))


def bad_words(line: str) -> Iterator[str]:
    """What NCCL takes otherwise than it was meant, or not at all."""
    line = line[:-1] if line.endswith("\r") else line
    if not line or line.startswith("#"):
        return
    name, equals, value = line.partition("=")
    if len(line) >= _LONGEST_LINE or len(value) > _LONGEST_VALUE:
        yield "it is too long"
    if not equals or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        yield "NAME=VALUE is wanted, with nothing before, between or behind"
    elif re.search(r"\s#|^[\"'].*[\"']$|^\s|\s$", value):
        yield "spaces, quotes and comments become part of the value"
