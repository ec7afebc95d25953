"""A fabric.yml → what would change in the files that are rendered beside it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpufab_cli.compile.fabric import Whole, load_whole
from gpufab_cli.errors import GpufabError, NotLockedError
from gpufab_cli.outputs.ansible.inventory import ANSIBLE
from gpufab_cli.outputs.files import FileChange, compare
from gpufab_cli.outputs.output import OutputFormat
from gpufab_cli.outputs.registry import OUTPUTS
from gpufab_cli.spec.lock import FILE_NAME


def inventory_path(fabric: Path) -> Path:
    """Where the inventory of a fabric.yml lies."""
    return fabric.parent / ANSIBLE.folder


@dataclass(frozen=True)
class Rendered:
    """The files to write and delete, and the hosts that are in no managed group, for the lock lacks them."""

    changes: tuple[FileChange, ...]
    unlocked: Mapping[str, NotLockedError]


def rendered(fabric: Path) -> Rendered:
    """What is to change below the directory of a fabric.yml, for every output.

    The files of an output that ``outputs:`` does not name any more are deleted.

    Raises:
        GpufabError: the fabric or its lock is wrong, no host is locked, or a foreign file is in the way.
    """
    whole = load_whole(fabric)
    _check_locked(whole)
    found = tuple(change for output in OUTPUTS.values() for change in _changes(whole, output))
    return Rendered(found, whole.wants.unlocked)


def inventory_changes(whole: Whole) -> tuple[FileChange, ...]:
    """The files to write and delete in the inventory alone.

    Raises:
        GpufabError: no host is locked, a foreign file is in the way, or the fabric is not written as an inventory.
    """
    _check_locked(whole)
    if ANSIBLE.name not in whole.resolved.spec.outputs:
        raise GpufabError(f"{whole.path}: outputs: does not name {ANSIBLE.name}", "add it, then run gpufab render")
    return _changes(whole, ANSIBLE)


def _check_locked(whole: Whole) -> None:
    """Refuse a fabric of which no host is told anything, for want of a lock: it would empty every group."""
    if whole.wants.unlocked and not whole.wants:
        raise GpufabError(f"{FILE_NAME}: no active host is in it with its devices", "run gpufab lock")


def _changes(whole: Whole, output: OutputFormat) -> tuple[FileChange, ...]:
    named = output.name in whole.resolved.spec.outputs
    files = output.render(whole.resolved, whole.wants) if named else {}
    return compare(whole.path.parent / output.folder, files, output.header)
