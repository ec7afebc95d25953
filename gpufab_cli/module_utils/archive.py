"""The node core as one zip that Python runs: the same bytes wherever they are built.

pip installs the core as files, the collection has it among its plugins; both build the zip from the sources that they
were imported from. Entries are stored, not deflated, with one fixed date, so that neither zlib's version nor the clock
shows.
"""

import io
import pkgutil
import sys
from functools import lru_cache
from importlib.util import find_spec
from typing import Any, Dict

from .host import sha256

PACKAGE = "gpufab_node"
# An apply may replace the file while a restore waits for its turn: what that imports late is still this file's.
_MAIN = f"""\
import os
import sys

sys.path[0] = "/proc/self/fd/%d" % os.open(sys.path[0], os.O_RDONLY)

from {PACKAGE}.program import main

sys.exit(main(sys.argv[1:]))
""".encode()
_DATE = (1980, 1, 1, 0, 0, 0)


def sources() -> Dict[str, bytes]:
    """The source of every module of the core, by its path below the package. None of them is imported for it."""
    base = __name__.rpartition(".")[0]
    found = {"__init__.py": b""}
    for _, name, is_package in pkgutil.walk_packages(sys.modules[base].__path__, f"{base}."):
        path = name[len(base) + 1 :].replace(".", "/")
        if is_package:  # the markers are empty; what a carrier puts into its own is not part of the core
            found[f"{path}/__init__.py"] = b""
        else:
            found[f"{path}.py"] = _source(name)
    return found


def _source(name: str) -> bytes:
    spec = find_spec(name)
    if spec is None or spec.origin is None or not spec.origin.endswith(".py"):
        raise ImportError(f"{name} is there without its source")
    loader: Any = spec.loader  # Python's own or Ansible's
    source: bytes = loader.get_data(spec.origin)
    return source


@lru_cache(maxsize=1)
def build() -> bytes:
    """The zip, byte-identical for identical sources."""
    import zipfile  # late: most who import this build nothing

    buffer = io.BytesIO()
    files = {f"{PACKAGE}/{path}": source for path, source in sources().items()}
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for path, source in sorted({"__main__.py": _MAIN, **files}.items()):
            entry = zipfile.ZipInfo(path, _DATE)
            entry.external_attr = 0o644 << 16
            entry.create_system = 3
            archive.writestr(entry, source)
    return buffer.getvalue()


@lru_cache(maxsize=1)
def digest() -> str:
    """What the zip is known by."""
    return sha256(build())
