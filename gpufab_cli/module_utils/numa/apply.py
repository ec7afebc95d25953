"""Make the steps of a node's interrupts, memory and PCI Express; undone, they get the changes turned round."""

from ..change import Change, Step
from ..host import Host
from . import irqbalance, irqs, memory, pci_config, sysctls


def apply(step: Step, host: Host) -> None:
    """Make the step's changes in their order.

    Raises:
        HostError: one failed; the rest is not begun.
    """
    if step.name == "numa irqbalance":
        irqbalance.apply(host, step)
        return
    for change in step.changes:
        _make(host, change)


def _make(host: Host, change: Change) -> None:
    where, name = change.path
    if where == "kernel":
        path = f"{sysctls.ROOT}/{sysctls.NODE[name]}" if name in sysctls.NODE else memory.TRANSPARENT
        host.set(path, change.desired)
    elif where == "hugepages":
        memory.set_hugepages(host, name, change.desired)
    elif name == "irq":
        irqs.write(host, where, change.desired)
    elif name == "acs":
        pci_config.set_acs(host, where, change.desired)
    elif name == "max_read_request":
        pci_config.set_max_read_request(host, where, change.desired)
    else:
        host.set(f"{sysctls.ROOT}/{sysctls.of_interface(*name.split('/'))}", change.desired)
