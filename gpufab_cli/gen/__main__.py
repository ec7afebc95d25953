"""``python -m gpufab_cli.gen [--check]``: write the generated files, or show how they differ from what is there."""

import argparse
import difflib
import sys
from pathlib import Path

from gpufab_cli.disk import replace
from gpufab_cli.gen.files import files

ROOT = Path(__file__).resolve().parents[2]


def main(arguments: list[str], root: Path = ROOT) -> int:
    """Write what differs; with ``--check`` only print the differences, and return 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m gpufab_cli.gen", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is stale")
    check = parser.parse_args(arguments).check
    stale = {path: text for path, text in files().items() if _read(root / path) != text}
    for path, text in stale.items():
        if check:
            sys.stdout.writelines(_diff(root / path, text))
        else:
            replace(root / path, text)
    return 1 if check and stale else 0


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def _diff(path: Path, wanted: str) -> list[str]:
    lines = _read(path).splitlines(keepends=True), wanted.splitlines(keepends=True)
    return list(difflib.unified_diff(*lines, f"a/{path.name}", f"b/{path.name}"))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
