"""The features ofed and nccl: sets of packages. What changes is made by Ansible's tasks, so they have no apply."""

from typing import Any

from ..change import Plan
from ..devices import Devices
from ..host import Reader
from ..snapshot import Snapshot
from . import plan as planning
from .gather import gather
from .recipe import Want
from .seen import PackagesSeen
from .want import NcclWant, OfedWant


class Packages:
    """One set of packages; its wish says which."""

    seen_type = PackagesSeen
    restored = False

    def __init__(self, name: str, want_type: type) -> None:
        self.name, self.want_type = name, want_type

    def gather(self, host: Reader, devices: Devices, want: Want) -> PackagesSeen:  # noqa: ARG002
        """What is there of the set, and what decides whether it may be touched."""
        return gather(host, want)

    def plan(self, snapshot: Snapshot, want: Want) -> Plan:
        """What would come, go and be pinned."""
        return planning.plan(snapshot.seen[self.name], snapshot.devices, want)

    def only(self, want: Any, device: str) -> Any:  # noqa: ARG002
        """The wish as a whole: it concerns no device."""
        return want


OFED = Packages("ofed", OfedWant)
NCCL = Packages("nccl", NcclWant)
