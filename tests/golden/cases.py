"""What the golden tests compare and regen.py rewrites: a case is a directory with a fabric.yml and what comes of it."""

import os
from pathlib import Path

from gpufab_cli.compile.fabric import load_whole
from gpufab_cli.errors import GpufabError
from gpufab_cli.outputs.ansible.inventory import inventory
from gpufab_cli.spec.load import load
from gpufab_cli.spec.lock import load_lock

HERE = Path(__file__).parent
SPEC = HERE / "spec" / "cases"
RENDER = HERE / "render" / "cases"
EXAMPLES = ("hgx-h100-roce", "inference-100g", "infiniband-ndr", "site-dscp-40")
"""The fabrics below inventory/ whose locks and inventories are committed; the lab's are made at run time."""


def names(root):
    return sorted(path.name for path in root.iterdir() if path.is_dir())


def stderr_of(case):
    """What validate prints on stderr for a fabric that is wrong, the path as it is typed beside the file."""
    before = Path.cwd()
    os.chdir(case)
    try:
        fabric = Path("fabric.yml")
        load(fabric)
        load_lock(fabric)
    except GpufabError as error:
        return "\n".join(error.lines()) + "\n"
    finally:
        os.chdir(before)
    return ""


def inventory_of(case):
    """Every file that render makes of a fabric, by relative path."""
    whole = load_whole(case / "fabric.yml")
    return inventory(whole.resolved, whole.wants)
