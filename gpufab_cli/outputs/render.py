"""A fabric.yml → what would change in the files that are rendered beside it."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from gpufab_cli.errors import GpufabError, NotLockedError
from gpufab_cli.intent.compile import Compiled, Wants, compile_wants
from gpufab_cli.outputs.ansible.inventory import ANSIBLE
from gpufab_cli.outputs.files import FileChange, compare
from gpufab_cli.outputs.output import OutputFormat
from gpufab_cli.outputs.registry import OUTPUTS
from gpufab_cli.spec.load import load
from gpufab_cli.spec.lock import FILE_NAME, load_lock
from gpufab_cli.spec.model import FabricSpec


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
    spec, wants = _compiled(fabric)
    found = tuple(change for output in OUTPUTS.values() for change in _changes(fabric, output, spec, wants))
    return Rendered(found, wants.unlocked)


def inventory_changes(fabric: Path) -> tuple[FileChange, ...]:
    """The files to write and delete in the inventory alone.

    Raises:
        GpufabError: as :func:`rendered`, or the fabric is not written as an inventory.
    """
    spec, wants = _compiled(fabric)
    if ANSIBLE.name not in spec.outputs:
        raise GpufabError(f"{fabric}: outputs: does not name {ANSIBLE.name}", "add it, then run gpufab render")
    return _changes(fabric, ANSIBLE, spec, wants)


def _compiled(fabric: Path) -> tuple[FabricSpec, Compiled]:
    """What hosts are told. That of none, for want of a lock, would empty every group."""
    spec = load(fabric)
    wants = compile_wants(spec, load_lock(fabric))
    if wants.unlocked and not wants:
        raise GpufabError(f"{FILE_NAME}: no active host is in it with its devices", "run gpufab lock")
    return spec, wants


def _changes(
    fabric: Path, output: OutputFormat, spec: FabricSpec, wants: Mapping[str, Wants]
) -> tuple[FileChange, ...]:
    files = output.render(spec, wants) if output.name in spec.outputs else {}
    return compare(fabric.parent / output.folder, files, output.header)
