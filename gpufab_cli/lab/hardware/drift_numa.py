"""One-shot changes of interrupts, memory and PCI Express, as daemons, resets and firmware make them."""

from collections.abc import Callable

from gpufab_cli.lab.hardware import config_space, interrupts
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.sysfs.numa import THP
from gpufab_cli.lab.hardware.sysfs.system import cpus


def _irq_moved(hw: Hardware, netdev: str) -> None:
    """As irqbalance does: all queues of the port to the last CPU."""
    last = str(cpus(interrupts.every_cpu(hw))[-1])
    numbers = [str(found.number) for found in interrupts.interrupts(hw) if found.port.netdev == netdev]
    hw.edit(lambda: hw.state.numa.irqs.update(dict.fromkeys(numbers, last)))


def _balancing_on(hw: Hardware, _: str) -> None:
    hw.edit(lambda: hw.state.numa.settings.update({"sys/kernel/numa_balancing": "1"}))


def _thp_always(hw: Hardware, _: str) -> None:
    hw.edit(lambda: hw.state.numa.settings.update({THP: "always"}))


def _acs_on(hw: Hardware, netdev: str) -> None:
    """The bridge above the port is as firmware leaves it."""
    place = hw.place(netdev)
    if place is not None:
        hw.edit(lambda: hw.state.numa.acs.update({place.behind[-1]: config_space.FIRMWARE}))


def _request_reset(hw: Hardware, netdev: str) -> None:
    place = hw.place(netdev)
    if place is not None:
        hw.edit(lambda: hw.state.numa.read_request.update({place.pci: config_space.REQUEST_DEFAULT}))


DRIFTS: dict[str, Callable[[Hardware, str], None]] = {
    "irq-moved": _irq_moved,
    "numa-balancing-on": _balancing_on,
    "thp-always": _thp_always,
    "acs-on": _acs_on,
    "max-read-req-reset": _request_reset,
}
