"""The files that tell NCCL its variables, on the node itself and for jobs in containers.

/etc/nccl.conf (NVIDIA/nccl, param.cc): ``NAME=VALUE`` lines, ``#`` in the first column only, nothing is trimmed or
unquoted, the first line about a name counts, and the environment comes before any file. enroot reads ``*.env`` files of
environ.d, ``NAME=VALUE`` too; Slurm takes ``export NAME=VALUE`` lines from what its task prolog prints
(slurm.conf(5), TaskProlog); ``podman run --env-file`` and the like take ``NAME=VALUE`` again.
"""

import re
from typing import Dict, Iterator, Tuple

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


def form(path: str) -> Format:
    """How the file at a path is written."""
    return _EXPORTS if path == TASK_PROLOG else _PLAIN


def paths(want: NcclEnvWant) -> Tuple[str, ...]:
    """The files that are kept."""
    return (NCCL_CONF, *(CONTAINERS[kind] for kind in want.containers or ()))


def other_file(text: str) -> OtherFile:
    """A file of somebody else's as NCCL reads it."""
    values: Dict[str, str] = {}
    bad = []
    for line in text.splitlines():
        pair = _PLAIN.parse(line)
        if pair is not None and pair[0].startswith("NCCL_"):
            values.setdefault(*pair)
        if list(bad_words(line)):
            bad.append(line[:80])
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
