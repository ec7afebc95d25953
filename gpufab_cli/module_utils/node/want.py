"""What the spec wants of gpufab's own footprint on a node."""

from dataclasses import dataclass
from typing import Annotated, Tuple

from ..schema import Doc, Pattern

FeatureName = Annotated[str, Pattern(r"[a-z][a-z_]{0,30}", "a feature name")]


@dataclass(frozen=True)
class NodeWant:
    """Everything the node feature is told about one node."""

    features: Annotated[Tuple[FeatureName, ...], Doc("The managed features; wishes of others are removed.")]
