"""The node core as one zip that Python runs: the same bytes wherever they are built.

Ansible ships the core inside its module archive, pip installs it as files, and a node runs it from the zip itself;
each builds the zip from the sources it was imported from. Entries are stored, not deflated, with one fixed date, so
that neither zlib's version nor the clock shows.
"""

import io
import sys
from functools import lru_cache
from typing import Dict

PACKAGE = "gpufab_node"
_MAIN = f"import sys\n\nfrom {PACKAGE}.program import main\n\nsys.exit(main(sys.argv[1:]))\n"
_DATE = (1980, 1, 1, 0, 0, 0)


def sources() -> Dict[str, str]:
    """The source text of every module of the core, by its path below the package."""
    # Imported by statements, not by name: so Ansible sees them when it collects what a module needs. Late, because the
    # features import this file.
    from . import ansible_module, counters, program, restore  # noqa: F401
    from .bind import command  # noqa: F401
    from .dvfs import job  # noqa: F401
    from .features import FEATURES
    from .packages import module  # noqa: F401
    from .topology import report  # noqa: F401

    tuple(FEATURES.values())
    base = __name__.rpartition(".")[0]
    found = {}
    for name, loaded in list(sys.modules.items()):
        loader = getattr(loaded, "__loader__", None)
        if (name == base or name.startswith(base + ".")) and loader is not None:
            path = name[len(base) + 1 :].replace(".", "/")
            is_package = hasattr(loaded, "__path__")
            file = "/".join(part for part in (path, "__init__") if part) if is_package else path
            # The package markers are empty; what a carrier puts into its own is not part of the core.
            found[file + ".py"] = "" if is_package else loader.get_source(name)
    return found


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
