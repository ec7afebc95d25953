"""The numa feature: interrupts, memory and PCI Express of a node, each next to the devices that it serves."""

from dataclasses import replace

from ..change import Plan, Step
from ..devices import Devices
from ..host import Host, Reader
from ..snapshot import Snapshot
from . import gather, plan
from .seen import NumaSeen
from .want import NumaWant


class Numa:
    """Nothing of it outlives a boot: it is kept as a wish and restored, the interrupts when their drivers have them."""

    name = plan.FEATURE
    want_type = NumaWant
    seen_type = NumaSeen
    restored = True

    def gather(self, host: Reader, devices: Devices, want: NumaWant) -> NumaSeen:
        """Look at what the wish is about."""
        return gather.gather(host, devices, want)

    def plan(self, snapshot: Snapshot, want: NumaWant) -> Plan:
        """A step a part of the node that differs."""
        return plan.plan(snapshot, want)

    def only(self, want: NumaWant, device: str) -> NumaWant:
        """The wish for one port; the other steps concern no single device and are read back as a whole."""
        if not device:
            return want
        ports = tuple(port for port in want.ports if port.pci == device)
        own = NumaWant(ports, shared_subnet=want.shared_subnet, max_read_request=want.max_read_request)
        return replace(own, irq=want.irq)

    def apply(self, step: Step, host: Host) -> None:
        """Make one step."""
        from . import apply  # late: an audit, a check and a node in sync go without

        apply.apply(step, host)
