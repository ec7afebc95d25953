"""Action plugin of the module gpufab.fabric.node: gives it gpufab's own program, built here on the controller.

What a module imports Ansible looks up and sends with each of its modules; as an argument the core is sent once, and in
check mode its digest alone.
"""

from typing import Any

from ansible.plugins.action import ActionBase

from ..module_utils import archive
from ..module_utils.node.program import ANNOUNCED, PACKED, pack

# Made when Ansible loads this, which it does before it forks a worker for each host: they share it.
_DIGEST, _PACKED = archive.digest(), pack(archive.build())


class ActionModule(ActionBase):  # type: ignore[misc]
    """Calls the module as without an action plugin, with two arguments more. The task does not hold these."""

    _supports_async = True

    def run(self, tmp: str | None = None, task_vars: dict[str, Any] | None = None) -> dict[str, Any]:
        """What the module says."""
        result: dict[str, Any] = super().run(tmp, task_vars)
        program = {ANNOUNCED: _DIGEST} if self._task.check_mode else {ANNOUNCED: _DIGEST, PACKED: _PACKED}
        wrap_async = self._task.async_val and not self._connection.has_native_async
        answer = self._execute_module(
            module_args={**self._task.args, **program}, task_vars=task_vars, wrap_async=wrap_async
        )
        return {**result, **answer}
