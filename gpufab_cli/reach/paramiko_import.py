"""paramiko, at two thirds of what its start costs: without invoke, which only its own reading of ssh_config would use.

``ssh -G`` reads ssh_config here (ssh_config.py). paramiko does without invoke wherever that is not installed.
"""

import sys
from typing import Any

__all__ = ["paramiko"]

_MODULES: dict[str, Any] = sys.modules
_HIDDEN = "invoke" not in _MODULES
if _HIDDEN:
    _MODULES["invoke"] = None  # "import invoke" now ends in ImportError
try:
    import paramiko
finally:
    if _HIDDEN:
        del _MODULES["invoke"]
