"""What is found of gpufab's own footprint on a node."""

from dataclasses import dataclass, field
from typing import Dict, Tuple, Union

from ..change import Absent, Unknown

Content = Union[str, Absent, Unknown]


@dataclass(frozen=True)
class NodeSeen:
    """Digests of the files, targets of the links, strays in desired.d, and how the last restores ended."""

    files: Dict[str, Content] = field(default_factory=dict)
    links: Dict[str, Content] = field(default_factory=dict)
    strays: Union[Tuple[str, ...], Unknown] = ()
    """Names in desired.d that are no managed feature's file."""
    restore_disabled: bool = False
    failed_units: Tuple[str, ...] = ()
    stale_units: Union[Tuple[str, ...], Unknown] = ()
    """Units that changed on disk after systemd read them; Unknown, with how the restores ended, if it does not say."""
