"""Rewrite what the golden tests expect, and the examples: ``python -m tests.golden.regen``. Then read the diff."""

from pathlib import Path

from gpufab_cli.outputs.ansible.inventory import ANSIBLE
from gpufab_cli.outputs.files import compare, write
from gpufab_cli.outputs.render import rendered
from tests.golden.cases import EXAMPLES, RENDER, SPEC, inventory_of, names, stderr_of


def main():
    for name in names(SPEC):
        (SPEC / name / "stderr.txt").write_text(stderr_of(SPEC / name), encoding="utf-8")
    for name in names(RENDER):
        root = RENDER / name / "inventory"
        write(root, compare(root, inventory_of(RENDER / name), ANSIBLE.header))
    for name in EXAMPLES:
        fabric = Path(__file__).parents[2] / "inventory" / name / "fabric.yml"
        write(fabric.parent, rendered(fabric).changes)


if __name__ == "__main__":
    main()
