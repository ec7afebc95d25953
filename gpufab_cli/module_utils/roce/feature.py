"""The roce feature: lossless, fair RoCE ports."""

from dataclasses import replace

from ..change import Plan, Step
from ..devices import Devices
from ..host import Host, Reader
from ..snapshot import Snapshot
from . import gather, plan
from .seen import RoceSeen
from .want import RoceWant


class Roce:
    """PFC, ECN, DSCP map, ETS and ToS of the ports that the lock pins."""

    name = plan.FEATURE
    want_type = RoceWant
    seen_type = RoceSeen
    restored = True

    def gather(self, host: Reader, devices: Devices, want: RoceWant) -> RoceSeen:
        """Look at the wanted ports."""
        return gather.gather(host, devices, want)

    def plan(self, snapshot: Snapshot, want: RoceWant) -> Plan:
        """One step a port that differs."""
        return plan.plan(snapshot, want)

    def only(self, want: RoceWant, device: str) -> RoceWant:
        """The wish for one port."""
        return replace(want, ports=tuple(port for port in want.ports if port.pci == device))

    def apply(self, step: Step, host: Host) -> None:
        """Make one port's step."""
        from . import apply  # late: an audit, a check and a node in sync go without

        apply.apply(step, host)
