"""What gpufab keeps of itself on a node."""

from collections.abc import Iterable

from gpufab_cli.module_utils.node.want import NodeWant


def node_want(features: Iterable[str]) -> NodeWant:
    """The managed features of a host, ``node`` itself aside."""
    return NodeWant(tuple(sorted(features)))
