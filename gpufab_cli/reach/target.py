"""How a host is reached: the one definition that the inventory and the audit share."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal


@dataclass(frozen=True)
class Target:
    """One host and the way to it. What is None is left to SSH's own settings.

    Attributes:
        host: its name in the fabric.
        address: IP address or name to connect to; SSH's configuration may map it further.
        ssh_config: the site's ssh_config as an absolute path.
        become: how root is gained; never by asking for a password.
        python: absolute path of the node's Python.
    """

    host: str
    address: str
    port: int | None
    user: str | None
    ssh_config: Path | None
    become: Literal["sudo", "none"]
    python: str
    state: Literal["active", "maintenance", "absent"]
