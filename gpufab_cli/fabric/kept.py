"""Which wishes a node keeps: those of the features that are restored at boot."""

from gpufab_cli.module_utils.features import FEATURES

KEPT = frozenset(name for name, feature in FEATURES.items() if feature.restored)
"""The features whose wish lies on the node."""
