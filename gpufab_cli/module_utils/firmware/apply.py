"""Make one card's step: write parameters for the next boot, or reset the card to make them current."""

from .. import vfs
from ..change import Step
from ..devices import PCI_DEVICES, gather
from ..host import Host, HostError
from . import backend
from .cards import functions
from .plan import RESET

DRIVER_SECONDS = 60
"""How long drivers may take to come back after a reset."""


def apply(step: Step, host: Host) -> None:
    """Make the step. Undoing one writes the old values; a reset is never undone.

    Raises:
        HostError: the firmware tool refuses, or the card does not come back.
    """
    if step.name.startswith(RESET + " "):
        _reset(host, step.device)
    else:
        backend.write(host, step.device, {change.path[1]: str(change.desired) for change in step.changes})


def _reset(host: Host, pci: str) -> None:
    """Reset the card with no VF left on any of its ports: the tools fail while there are some."""
    ports = functions(gather(host), pci)
    for port in ports:
        if vfs.any_enabled(host, port):
            host.set(f"{PCI_DEVICES}/{port}/sriov_numvfs", "0")
    backend.reset(host, pci)
    for port in ports:
        _wait_for_driver(host, port)


def _wait_for_driver(host: Host, pci: str) -> None:
    folder = f"{PCI_DEVICES}/{pci}"
    for _ in range(DRIVER_SECONDS * 5):
        if host.exists(f"{folder}/net") or host.exists(f"{folder}/infiniband"):
            return
        host.sleep(0.2)
    raise HostError(f"{pci} has neither netdev nor RDMA device {DRIVER_SECONDS} s after its reset")
