"""What a feature is: a folder that can look at its part of a node, say what would change, and make the changes."""

from typing import Any, Protocol

from .change import Plan, Step
from .devices import Devices
from .host import Host, Reader
from .snapshot import Snapshot


class Feature(Protocol):
    """A feature reads and plans. ``plan`` is pure and decides for apply, check mode, audit and restore alike."""

    @property
    def name(self) -> str:
        """What fabric, records and results call it."""

    @property
    def want_type(self) -> type:
        """The dataclass of its wish."""

    @property
    def seen_type(self) -> type:
        """The dataclass of what it finds."""

    @property
    def restored(self) -> bool:
        """Whether the wish is kept on the node and brought back at boot."""

    def gather(self, host: Reader, devices: Devices, want: Any) -> Any:
        """Look at the node. ``want`` says what to read, never what is found."""

    def plan(self, snapshot: Snapshot, want: Any) -> Plan:
        """What would change, resolved on ``snapshot.devices``; no access to the node."""

    def only(self, want: Any, device: str) -> Any:
        """The part of the wish that concerns one device ("": none), for reading a step back."""


class Applies(Feature, Protocol):
    """A feature whose work is done by the core rather than by Ansible tasks."""

    def apply(self, step: Step, host: Host) -> None:
        """Make the step's changes in their order. Raises HostError at the first that fails."""
