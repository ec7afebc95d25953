"""The firmware feature: non-volatile settings of NICs."""

from dataclasses import replace

from ..change import Plan, Step
from ..devices import Devices
from ..host import Host, Reader
from ..snapshot import Snapshot
from . import gather, plan
from .cards import slot
from .seen import FirmwareSeen
from .want import FirmwareWant


class Firmware:
    """Firmware parameters of the cards of the ports that the lock pins. The card keeps them: nothing to restore."""

    name = plan.FEATURE
    want_type = FirmwareWant
    seen_type = FirmwareSeen
    restored = False

    def gather(self, host: Reader, devices: Devices, want: FirmwareWant) -> FirmwareSeen:
        """Look at the wanted cards."""
        return gather.gather(host, devices, want)

    def plan(self, snapshot: Snapshot, want: FirmwareWant) -> Plan:
        """Up to two steps a card that differs."""
        return plan.plan(snapshot, want)

    def only(self, want: FirmwareWant, device: str) -> FirmwareWant:
        """The wish for one card: the port at the address, and those that share its serial number or slot."""
        serials = {port.serial for port in want.ports if port.pci == device} - {None}
        own = (port for port in want.ports if port.serial in serials or slot(port.pci) == slot(device))
        return replace(want, ports=tuple(own))

    def apply(self, step: Step, host: Host) -> None:
        """Make one step."""
        from . import apply  # late: an audit, a check and a node in sync go without

        apply.apply(step, host)
