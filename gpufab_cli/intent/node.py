"""What gpufab keeps of itself on a node."""

from collections.abc import Iterable

from gpufab_cli.module_utils.node.want import NodeWant
from gpufab_cli.spec.model import FabricSpec


def node_want(spec: FabricSpec, features: Iterable[str]) -> NodeWant:
    """The managed features of a host, ``node`` itself aside, and what its restore needs to know."""
    return NodeWant(tuple(sorted(features)), spec.connection.python, spec.restore.wait_s, spec.restore.services)
