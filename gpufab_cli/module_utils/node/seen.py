"""What is found of gpufab's own footprint on a node."""

from dataclasses import dataclass, field
from typing import Dict, Tuple, Union

from ..change import ABSENT, Absent, Unknown

Content = Union[str, Absent, Unknown]


@dataclass(frozen=True)
class NodeSeen:
    """Digests of the files, targets of the links, strays in desired.d, and how the last restores ended."""

    files: Dict[str, Content] = field(default_factory=dict)
    links: Dict[str, Content] = field(default_factory=dict)
    strays: Union[Tuple[str, ...], Unknown] = ()
    """Names in desired.d that are no managed feature's file."""
    python: str = ""
    """The interpreter that is to start gpufab: the wanted one, else the one that looked."""
    python_missing: bool = False
    order: Content = ABSENT
    """How long the early restore waits, and the units it comes before, in one line; of a foreign file, its digest."""
    loops: Union[Dict[str, str], Unknown] = field(default_factory=dict)
    """Units that cannot be among them, for they come before the early restore by the node's own order; and how."""
    restore_disabled: bool = False
    failed_units: Tuple[str, ...] = ()
    stale_units: Union[Tuple[str, ...], Unknown] = ()
    """Units that changed on disk after systemd read them; Unknown, with how the restores ended, if it does not say."""
