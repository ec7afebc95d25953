"""What the links feature sees beside the node's devices: nothing."""

from dataclasses import dataclass


@dataclass(frozen=True)
class LinksSeen:
    """All that the plan needs is in the snapshot's devices."""
