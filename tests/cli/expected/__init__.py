"""Whole outputs, one file each. ``GPUFAB_REGEN=1 pytest tests/cli`` writes them anew; then read the diff."""

import os
from pathlib import Path

HERE = Path(__file__).parent


def expected(name, text):
    """The text that a command is to print; ``text`` is what it printed."""
    path = HERE / f"{name}.txt"
    if os.environ.get("GPUFAB_REGEN"):
        path.write_text(text, encoding="utf-8")
    return path.read_text(encoding="utf-8")
