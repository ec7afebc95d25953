"""The sriov feature: virtual functions of physical ports."""

from dataclasses import replace

from ..change import Plan, Step
from ..devices import Devices
from ..host import Host, Reader
from ..snapshot import Snapshot
from . import gather, plan
from .seen import SriovSeen
from .want import SriovWant


class Sriov:
    """Count, addresses and settings of the VFs of the ports that the lock pins."""

    name = plan.FEATURE
    want_type = SriovWant
    seen_type = SriovSeen
    restored = True

    def gather(self, host: Reader, devices: Devices, want: SriovWant) -> SriovSeen:
        """Look at the wanted ports and their VFs."""
        return gather.gather(host, devices, want)

    def plan(self, snapshot: Snapshot, want: SriovWant) -> Plan:
        """One step a port that differs."""
        return plan.plan(snapshot, want)

    def only(self, want: SriovWant, device: str) -> SriovWant:
        """The wish for one port; for no device, that of the node as a whole."""
        ports = tuple(port for port in want.ports if port.pci == device)
        return replace(want, ports=ports, unmanaged=None if device else want.unmanaged)

    def apply(self, step: Step, host: Host) -> None:
        """Make one step."""
        from . import apply  # late: an audit, a check and a node in sync go without

        apply.apply(step, host)
