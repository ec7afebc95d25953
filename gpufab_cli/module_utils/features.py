"""Every feature by name, in the order in which they are applied and restored. Adding one is adding a row here."""

from typing import Any, Dict

from .node.feature import Node
from .roce.feature import Roce

FEATURES: Dict[str, Any] = {feature.name: feature for feature in (Node(), Roce())}
WANT_TYPES: Dict[str, type] = {name: feature.want_type for name, feature in FEATURES.items()}
SEEN_TYPES: Dict[str, type] = {name: feature.seen_type for name, feature in FEATURES.items()}
