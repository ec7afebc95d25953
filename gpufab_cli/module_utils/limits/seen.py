"""What is found of the resource limits of one node."""

from dataclasses import dataclass, field
from typing import Dict, Tuple, Union

from ..change import ABSENT, Absent, Unknown

Limit = Union[str, Absent, Unknown]
"""``unlimited``, or bytes; SOFT:HARD where these differ. ABSENT: nothing runs that has it."""
Text = Union[str, Absent, Unknown]


@dataclass(frozen=True)
class ServiceSeen:
    """A service that the node has."""

    configured: Limit
    """What systemd starts it with."""
    running: Limit
    """What its main process has, as the kernel tells; ABSENT: it does not run."""


@dataclass(frozen=True)
class LimitsSeen:
    """Files by path, services by unit, and what logins get."""

    files: Dict[str, Text] = field(default_factory=dict)
    """What the file of logins and the drop-in of every service hold."""
    strays: Dict[str, Text] = field(default_factory=dict)
    """gpufab's drop-ins of services that are not wanted, or not there."""
    services: Union[Dict[str, ServiceSeen], Unknown] = field(default_factory=dict)
    login: Limit = ABSENT
    """What this very login has."""
    entries: Tuple[Tuple[str, str, str], ...] = ()
    """Entries of others that may outweigh gpufab's: file, whom they are about, the limit."""
    pam: Union[bool, Absent, Unknown] = ABSENT
    """Whether sshd's PAM session sets limits at all; ABSENT: it has none."""
    slurm_propagates: bool = False
    """Whether jobs get the limit of the shell that submits them, whatever slurmd has."""
