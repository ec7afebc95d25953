"""Interrupts, huge pages and IOMMU groups; and what of /proc a machine has of its own.

A container has its host's /proc. What the machine shows there instead lies below `PROC`, and the node's boot binds it
over the real thing.
"""

import errno
from functools import partial

from gpufab_cli.lab.hardware import interrupts
from gpufab_cli.lab.hardware.interrupts import Interrupt
from gpufab_cli.lab.hardware.model import Hardware, fail
from gpufab_cli.lab.hardware.sysfs.system import cpu_mask, cpus
from gpufab_cli.lab.hardware.sysfs.tree import Tree, number

PROC = "/fs/gpufab-lab/proc"
THP = "/kernel/mm/transparent_hugepage/enabled"
SETTINGS = {"sys/kernel/numa_balancing": ("1", 2), "sys/vm/zone_reclaim_mode": ("0", 7)}
"""Settings by their path below /proc: what the kernel starts with, and the largest value it takes."""
_PAGES_KIB = (2048, 1048576)
_KIB_PER_GIB = 1024 * 1024
_THP_WORDS = ("always", "madvise", "never")
_RESERVE = 10  # percent of a node's memory that is never free for huge pages
_MOST = 2**31


def add(tree: Tree, hw: Hardware) -> None:
    """Adds all of it."""
    for interrupt in interrupts.interrupts(hw):
        _interrupt(tree, hw, interrupt)
    tree.live(f"{PROC}/interrupts", partial(interrupts.table, hw))
    for path, (default, most) in SETTINGS.items():
        read = partial(_setting, hw, path, default)
        tree.live(f"{PROC}/{path}", read, partial(_set_number, hw, path, most))
    tree.live(THP, partial(_thp, hw), partial(_set_thp, hw))
    for node in hw.machine.numa:
        for kib in _PAGES_KIB if node.memory_gib else ():
            folder = f"/devices/system/node/node{node.id}/hugepages/hugepages-{kib}kB"
            key = f"node{node.id}/{kib}"
            write = partial(_set_pages, hw, key, node.memory_gib)
            tree.live(f"{folder}/nr_hugepages", partial(_pages, hw, key), write)
            tree.live(f"{folder}/free_hugepages", partial(_pages, hw, key))
    if hw.state.numa.domain:
        _groups(tree, hw)


def _interrupt(tree: Tree, hw: Hardware, interrupt: Interrupt) -> None:
    tree.text(f"/devices/{interrupt.port.sysfs}/msi_irqs/{interrupt.number}", "msix")
    folder = f"{PROC}/irq/{interrupt.number}"
    read = partial(interrupts.affinity, hw, interrupt.number)
    tree.live(f"{folder}/smp_affinity_list", read, partial(interrupts.set_affinity, hw, interrupt))
    tree.live(f"{folder}/smp_affinity", lambda: cpu_mask(read()), partial(interrupts.set_mask, hw, interrupt))
    tree.live(f"{folder}/effective_affinity_list", lambda: cpus(read())[0])
    tree.text(f"{folder}/node", interrupt.port.numa)
    tree.directory(f"{folder}/{interrupt.action}")


def _setting(hw: Hardware, path: str, default: str) -> str:
    return hw.state.numa.settings.get(path, default)


def _set_number(hw: Hardware, path: str, most: int, text: str) -> None:
    value = str(number(text, 0, most))
    hw.edit(lambda: hw.state.numa.settings.update({path: value}))


def _thp(hw: Hardware) -> str:
    now = _setting(hw, THP, "always")
    return " ".join(f"[{word}]" if word == now else word for word in _THP_WORDS)


def _set_thp(hw: Hardware, text: str) -> None:
    if text.strip() not in _THP_WORDS:
        raise fail(errno.EINVAL)
    hw.edit(lambda: hw.state.numa.settings.update({THP: text.strip()}))


def _pages(hw: Hardware, key: str) -> int:
    return hw.state.numa.hugepages.get(key, 0)


def _set_pages(hw: Hardware, key: str, memory_gib: int, text: str) -> None:
    """The kernel gives as many as it has memory for, and says nothing."""
    free = memory_gib * _KIB_PER_GIB * (100 - _RESERVE) // 100
    node = key.partition("/")[0]
    others = (name for name in hw.state.numa.hugepages if name.startswith(f"{node}/") and name != key)
    free -= sum(hw.state.numa.hugepages[name] * int(name.partition("/")[2]) for name in others)
    count = min(number(text, 0, _MOST), free // int(key.partition("/")[2]))
    hw.edit(lambda: hw.state.numa.hugepages.update({key: count}))


def _groups(tree: Tree, hw: Hardware) -> None:
    """A group for each port and GPU, with the domain that they are in."""
    for group, place in enumerate((*hw.machine.ports, *hw.machine.gpus)):
        folder = f"/kernel/iommu_groups/{group}"
        tree.text(f"{folder}/type", hw.state.numa.domain)
        tree.link(f"{folder}/devices/{place.pci}", f"/devices/{place.sysfs}")
        tree.link(f"/devices/{place.sysfs}/iommu_group", folder)
