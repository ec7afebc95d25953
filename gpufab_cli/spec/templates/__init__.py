"""One commented fabric.yml to start from for each kind of fabric."""

from importlib.resources import files

KINDS = ("lab", "roce", "roce-dual-plane", "infiniband")


def template(kind: str) -> str:
    """The text of a kind's fabric.yml."""
    return files(__package__).joinpath(f"{kind}.yml").read_text(encoding="utf-8")
