"""A fabric.yml → what would change in the inventory beside it."""

from pathlib import Path

from gpufab_cli.intent.compile import compile_wants
from gpufab_cli.render.files import FileChange, compare
from gpufab_cli.render.inventory import DIRECTORY, inventory
from gpufab_cli.spec.load import load
from gpufab_cli.spec.lock import load_lock


def inventory_path(fabric: Path) -> Path:
    """Where the inventory of a fabric.yml lies."""
    return fabric.parent / DIRECTORY


def changes(fabric: Path) -> tuple[FileChange, ...]:
    """The files to write and delete.

    Raises:
        GpufabError: the fabric or its lock is wrong, or a foreign file is in the way.
    """
    spec = load(fabric)
    return compare(inventory_path(fabric), inventory(spec, compile_wants(spec, load_lock(fabric))))
