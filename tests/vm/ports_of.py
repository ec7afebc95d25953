"""What the settings of a rail port are, read with the distribution's own tools."""

import json
from collections.abc import Callable
from typing import Any

Shell = Callable[..., str]
PCI = ("0000:41:00.0", "0000:81:00.0")


def lossless(sh: Shell, port: str) -> bool:
    """Whether PFC is on for priority 3 alone."""
    found = json.loads(sh(f"dcb -j pfc show dev {port} 2>/dev/null || echo '{{}}'") or "{}")
    return found.get("prio_pfc") == [number == 3 for number in range(8)]


def vfs(sh: Shell, port: str) -> list[dict[str, Any]]:
    """Of each VF its address, trust and spoofchk."""
    said = sh(f"ip -j link show dev {port} 2>/dev/null || echo '[]'") or "[]"
    rows = json.loads(said)
    found = rows[0].get("vfinfo_list", []) if rows else []
    return [{"mac": vf["address"], "trust": vf["trust"], "spoofchk": vf["spoofchk"]} for vf in found]


def state(sh: Shell, port: str) -> tuple[bool, list[dict[str, Any]]]:
    """Whether it is lossless, and its VFs."""
    return lossless(sh, port), vfs(sh, port)
