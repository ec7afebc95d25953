"""The machine around the devices: CPUs, NUMA nodes, modules, DMI."""

from collections.abc import Iterable
from functools import cache, partial

from gpufab_cli.lab.hardware import gpu_software
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.sysfs.tree import Tree

_WORD_BITS = 32
_THREADS = 2  # of a core, with simultaneous multithreading
_LOCAL, _REMOTE = 10, 21  # ACPI SLIT distances of a two-socket machine
# An NVIDIA driver stack beside the inbox RDMA stack.
_MODULES = ("mlx5_core", "mlx5_ib", "ib_core", "ib_uverbs", "rdma_ucm", "nvidia", "nvidia_uvm", "pcieport")
# Directories that a container runtime or systemd mounts on, or that readers expect even when empty.
_EMPTY = (
    "/fs/cgroup",
    "/firmware",
    "/dev/block",
    "/dev/char",
    "/kernel/debug",
    "/kernel/mm",
    "/block",
)


def cpus(text: str) -> list[int]:
    """CPU numbers of a list such as 0-3,8; none of an empty one."""
    numbers: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers.extend(range(int(first), int(last or first) + 1))
    return numbers


@cache  # asked for each PCI function
def cpu_mask(text: str) -> str:
    """A CPU list as the kernel's comma-separated 32-bit words, highest first."""
    mask = sum(1 << cpu for cpu in cpus(text))
    words: list[str] = []
    while mask or not words:
        words.append(f"{mask & 0xFFFFFFFF:08x}")
        mask >>= _WORD_BITS
    return ",".join(reversed(words))


def listed(numbers: Iterable[int]) -> str:
    """A list of numbers as the kernel prints one, such as 0-3,8."""
    runs: list[list[int]] = []
    for number in sorted(numbers):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


def cores(text: str) -> list[tuple[int, ...]]:
    """The CPUs of a node by core: where they are two equal runs, the second are the second threads of the first."""
    runs = [cpus(run) for run in text.split(",")]
    if len(runs) == _THREADS and len(runs[0]) == len(runs[1]) > 1:
        return list(zip(*runs, strict=True))
    return [(cpu,) for cpu in cpus(text)]


def add(tree: Tree, hw: Hardware) -> None:
    """Adds everything that is no device."""
    for path in _EMPTY:
        tree.directory(path)
    for module in _MODULES:
        tree.text(f"/module/{module}/initstate", "live")
    tree.text("/module/nvidia/version", gpu_software.running(hw))
    if gpu_software.peermem(hw):
        tree.text("/module/nvidia_peermem/initstate", "live")
        tree.text("/module/nvidia_peermem/version", gpu_software.running(hw))
        for module in ("ib_core", "nvidia"):
            tree.link(f"/module/{module}/holders/nvidia_peermem", "/module/nvidia_peermem")
    if not hw.state.fault("no-rdma-cm"):
        tree.text("/module/rdma_cm/initstate", "live")
    locked = hw.state.held("nic-locked-down")
    tree.text(
        "/kernel/security/lockdown",
        "none [integrity] confidentiality" if locked else "[none] integrity confidentiality",
    )
    _nodes(tree, hw)
    _cpus(tree, hw)
    _dmi(tree, hw)


def _nodes(tree: Tree, hw: Hardware) -> None:
    base, nodes = "/devices/system/node", hw.machine.numa
    with_cpus, with_memory = [node.id for node in nodes if node.cpus], [node.id for node in nodes if node.memory_gib]
    for name in ("online", "possible"):
        tree.text(f"{base}/{name}", listed([node.id for node in nodes]))
    for name, ids in (("has_cpu", with_cpus), ("has_memory", with_memory), ("has_normal_memory", with_memory)):
        tree.text(f"{base}/{name}", listed(ids))
    for node in nodes:
        folder = f"{base}/node{node.id}"
        distances = node.distances or tuple(_LOCAL if other is node else _REMOTE for other in nodes)
        tree.counted(f"{folder}/cpulist", node.cpus)
        tree.counted(f"{folder}/cpumap", cpu_mask(node.cpus))
        tree.text(f"{folder}/distance", " ".join(map(str, distances)))
        tree.text(f"{folder}/meminfo", f"Node {node.id} MemTotal:       {node.memory_gib * 1024 * 1024} kB")


def _cpus(tree: Tree, hw: Hardware) -> None:
    base = "/devices/system/cpu"
    every = [cpu for node in hw.machine.numa for cpu in cpus(node.cpus)]
    for name in ("online", "possible", "present"):
        tree.text(f"{base}/{name}", listed(every))
    for node in hw.machine.numa:
        for threads in cores(node.cpus):
            for cpu in threads:
                folder = f"{base}/cpu{cpu}"
                tree.later(f"{folder}/topology", partial(_topology, f"{folder}/topology", node.socket, threads))
                tree.link(f"{folder}/node{node.id}", f"/devices/system/node/node{node.id}")


def _topology(folder: str, socket: int, threads: tuple[int, ...], tree: Tree) -> None:
    tree.text(f"{folder}/physical_package_id", socket)
    tree.text(f"{folder}/core_id", threads[0])
    tree.counted(f"{folder}/thread_siblings_list", listed(threads))


def _dmi(tree: Tree, hw: Hardware) -> None:
    base = "/devices/virtual/dmi/id"
    tree.link("/class/dmi/id", base)
    tree.text(f"{base}/sys_vendor", hw.machine.vendor)
    tree.text(f"{base}/product_name", hw.machine.product)
    tree.text(f"{base}/product_serial", hw.identity.serial("S"), mode=0o400)
