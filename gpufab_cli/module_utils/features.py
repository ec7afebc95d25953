"""Every feature by name, in the order in which they are applied and restored. Adding one is adding a row here."""

from typing import Any, Dict, Tuple

from .dvfs.feature import Dvfs
from .firmware.feature import Firmware
from .gpu_stack.feature import GpuStack
from .kernel.feature import Kernel
from .limits.feature import Limits
from .links.feature import Links
from .node.feature import Node
from .roce.feature import Roce
from .sriov.feature import Sriov

_ALL: Tuple[Any, ...] = (Node(), Kernel(), Firmware(), Roce(), Links(), Sriov(), Dvfs(), GpuStack(), Limits())
FEATURES: Dict[str, Any] = {feature.name: feature for feature in _ALL}
WANT_TYPES: Dict[str, type] = {name: feature.want_type for name, feature in FEATURES.items()}
SEEN_TYPES: Dict[str, type] = {name: feature.seen_type for name, feature in FEATURES.items()}
