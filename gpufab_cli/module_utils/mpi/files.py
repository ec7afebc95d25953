"""The files that tell Open MPI, PRRTE and UCX their parameters, and the program that binds ranks.

Open MPI and PRRTE read ``name = value`` lines, the last about a name counts (measured with 4.1 and 5.0). UCX reads
``NAME=VALUE`` lines of /etc/ucx/ucx.conf since 1.11, the last counts, and ``[section]`` lines make what follows
conditional: gpufab's lines go before them.
"""

from typing import Dict, Tuple

from ..place import COMMAND
from ..settings_file import Format
from .seen import Install, MpiSeen

UCX_CONF = "/etc/ucx/ucx.conf"
OPENMPI, PRTE = "openmpi-mca-params.conf", "prte-mca-params.conf"
PROGRAM = "/usr/local/bin/gpufab-bind"
SCRIPT = f"""\
#!/bin/sh
# Kept by gpufab: changes made here are reverted.
exec {COMMAND} bind "$@"
""".encode()
RUN_BY_ALL = 0o755

# What Debian's package openmpi-common ships, so that Open MPI works where there is no UCX: nobody's wish.
_DEBIAN = (("pml", "^ucx"), ("mtl", "^ofi"), ("btl", "^uct,openib,ofi"), ("osc", "^ucx,pt2pt"))
_MCA = Format("{name} = {value}", r"\s*(?P<name>\w+)\s*=\s*(?P<value>.*?)\s*", first=False, top=False, defaults=_DEBIAN)
_UCX = Format("{name}={value}", r"\s*(?P<name>UCX_\w+)\s*=\s*(?P<value>.*?)\s*", first=False)


def form(path: str) -> Format:
    """How the file at a path is written."""
    return _UCX if path == UCX_CONF else _MCA


def openmpi(install: Install) -> str:
    """The parameters of one Open MPI."""
    return f"{install.folder}/{OPENMPI}"


def prte(install: Install) -> str:
    """The parameters of its run-time, from release 5 on; before, they are Open MPI's own."""
    return f"{install.folder}/{PRTE}"


def paths(installs: Tuple[Install, ...], *, ucx: bool) -> Tuple[str, ...]:
    """Every file that may have to be written."""
    found: Dict[str, None] = {}
    for install in installs:
        found[openmpi(install)] = None
        if isinstance(install.major, int) and install.major >= MAJOR_OF_PRTE:
            found[prte(install)] = None
    return (*found, *((UCX_CONF,) if ucx else ()))


MAJOR_OF_PRTE = 5


def excludes_openib(seen: MpiSeen, path: str) -> bool:
    """Whether the file, the distribution's lines included, leaves out the BTL openib already."""
    text = seen.files.get(path)
    pairs = [_MCA.parse(line) for line in text.splitlines()] if isinstance(text, str) else []
    values = [pair[1] for pair in pairs if pair is not None and pair[0] == "btl" and pair[1] != NO_OPENIB]
    return bool(values) and values[-1].startswith("^") and "openib" in values[-1][1:].split(",")


NO_OPENIB = "^openib"
