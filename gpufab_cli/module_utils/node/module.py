"""What the module of the node feature does: its action plugin gives it gpufab's program. Imports nothing of Ansible."""

from dataclasses import replace
from typing import Any, Dict

from .. import ansible_module
from .feature import Node
from .program import ANNOUNCED, PACKED, Sent


def arguments(feature: Node) -> Dict[str, Any]:
    """The argument spec of the module."""
    of_action = {ANNOUNCED: {"type": "str", "default": ""}, PACKED: {"type": "str", "default": "", "no_log": True}}
    return {**ansible_module.arguments(feature), **of_action}


def run(module: Any, feature: Node) -> None:
    """Converge the feature, told of the program, as an AnsibleModule's arguments say, and leave through it.

    What came of the program is taken out of the arguments, so that no result shows it.
    """
    sent = Sent(module.params.pop(ANNOUNCED), module.params.pop(PACKED))
    ansible_module.run(module, replace(feature, program=sent))
