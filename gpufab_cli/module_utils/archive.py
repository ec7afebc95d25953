"""The node core as one zip that Python runs: the same bytes wherever they are built.

Ansible ships the core inside its module archive, pip installs it as files, and a node runs it from the zip itself;
each builds the zip from the sources it was imported from. Entries are stored, not deflated, with one fixed date, so
that neither zlib's version nor the clock shows.
"""

import io
import pkgutil
import sys
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Dict, Optional

if TYPE_CHECKING:
    # Nobody imports these here. Ansible sends a node what a module's import statements name: with them, the whole core.
    from . import ansible_module, counters, features, program, restore  # noqa: F401
    from .bind import command  # noqa: F401
    from .dvfs import job  # noqa: F401
    from .packages import module  # noqa: F401
    from .topology import report  # noqa: F401

PACKAGE = "gpufab_node"
_MAIN = f"import sys\n\nfrom {PACKAGE}.program import main\n\nsys.exit(main(sys.argv[1:]))\n"
_DATE = (1980, 1, 1, 0, 0, 0)


def sources() -> Dict[str, str]:
    """The source text of every module of the core, by its path below the package. None of them is imported for it."""
    base = __name__.rpartition(".")[0]
    found = {"__init__.py": ""}
    for _, name, is_package in pkgutil.walk_packages(sys.modules[base].__path__, f"{base}."):
        path = name[len(base) + 1 :].replace(".", "/")
        if is_package:  # the markers are empty; what a carrier puts into its own is not part of the core
            found[f"{path}/__init__.py"] = ""
        else:
            found[f"{path}.py"] = _source(name)
    return found


def _source(name: str) -> str:
    spec = find_spec(name)
    loader: Any = spec and spec.loader  # of files or of a zip: both give the source
    source: Optional[str] = loader and loader.get_source(name)
    if source is None:
        raise ImportError(f"{name} is there without its source")
    return source


@lru_cache(maxsize=1)
def build() -> bytes:
    """The zip, byte-identical for identical sources."""
    import zipfile  # late: most who import this build nothing

    buffer = io.BytesIO()
    files = {f"{PACKAGE}/{path}": text for path, text in sources().items()}
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_STORED) as archive:
        for path, text in sorted({"__main__.py": _MAIN, **files}.items()):
            entry = zipfile.ZipInfo(path, _DATE)
            entry.external_attr = 0o644 << 16
            entry.create_system = 3
            archive.writestr(entry, text.encode("utf-8"))
    return buffer.getvalue()
