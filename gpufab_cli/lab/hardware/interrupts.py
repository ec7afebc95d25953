"""Interrupts of NIC ports: their numbers, and what the kernel does when their affinity is written (irq/proc.c)."""

import errno
from collections.abc import Iterator
from dataclasses import dataclass

from gpufab_cli.lab.hardware.model import Hardware, fail
from gpufab_cli.lab.hardware.sysfs.system import cpus, listed
from gpufab_cli.lab.machine import PortPlace

QUEUES = 8  # completion vectors of a port; real cards have one a CPU, up to 63
MANAGED = "irq-managed"
_FIRST, _BOOTS = 64, 8


@dataclass(frozen=True)
class Interrupt:
    """One vector of a port."""

    number: int
    port: PortPlace
    action: str
    managed: bool


def interrupts(hw: Hardware) -> Iterator[Interrupt]:
    """Every vector of every port. No number is the same at the next boot."""
    number = _FIRST + hw.state.boots % _BOOTS
    for place in hw.machine.ports:
        managed = hw.state.fault(MANAGED, place.netdev) is not None
        for name in ("async0", *(f"comp{queue}" for queue in range(QUEUES))):
            action = f"{hw.machine.nic.driver.split('_')[0]}_{name}@pci:{place.pci}"
            yield Interrupt(number, place, action, managed and name == "async0")
            number += 1


def every_cpu(hw: Hardware) -> str:
    """All CPUs that are online."""
    return listed(cpu for node in hw.machine.numa for cpu in cpus(node.cpus))


def affinity(hw: Hardware, number: int) -> str:
    """The CPUs that may take an interrupt."""
    return hw.state.numa.irqs.get(str(number), every_cpu(hw))


def set_affinity(hw: Hardware, interrupt: Interrupt, text: str) -> None:
    """Sets them from a list of CPUs.

    Raises:
        OSError: EIO for a managed interrupt; EINVAL for what is no list, or one of CPUs that are all offline.
    """
    if interrupt.managed:
        raise fail(errno.EIO)
    try:
        wanted = cpus(text.strip())
    except ValueError:
        raise fail(errno.EINVAL) from None
    if not set(wanted) & set(cpus(every_cpu(hw))):
        raise fail(errno.EINVAL)
    hw.edit(lambda: hw.state.numa.irqs.update({str(interrupt.number): listed(wanted)}))


def set_mask(hw: Hardware, interrupt: Interrupt, text: str) -> None:
    """Sets them from a mask, as `set_affinity` does from a list.

    Raises:
        OSError: as there.
    """
    try:
        mask = int(text.strip().replace(",", ""), 16)
    except ValueError:
        raise fail(errno.EINVAL) from None
    set_affinity(hw, interrupt, listed(bit for bit in range(mask.bit_length()) if mask >> bit & 1))


def table(hw: Hardware) -> str:
    """/proc/interrupts: a column for each CPU, and who the interrupt is for."""
    every = cpus(every_cpu(hw))
    rows = ["     " + "".join(f"{f'CPU{cpu}':>11}" for cpu in every)]
    for interrupt in interrupts(hw):
        target = cpus(affinity(hw, interrupt.number))[0]
        counts = "".join(f"{1 if cpu == target else 0:>11}" for cpu in every)
        rows.append(
            f"{interrupt.number:>4}:{counts}  IR-PCI-MSIX-{interrupt.port.pci}    0-edge      {interrupt.action}"
        )
    return "\n".join(rows)
