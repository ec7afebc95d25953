"""The machine around the devices: CPUs, NUMA nodes, modules, DMI."""

from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.sysfs.tree import Tree

_WORD_BITS = 32
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
    """CPU numbers of a list such as 0-3,8."""
    numbers: list[int] = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        numbers.extend(range(int(first), int(last or first) + 1))
    return numbers


def cpu_mask(text: str) -> str:
    """A CPU list as the kernel's comma-separated 32-bit words, highest first."""
    mask = sum(1 << cpu for cpu in cpus(text))
    words: list[str] = []
    while mask or not words:
        words.append(f"{mask & 0xFFFFFFFF:08x}")
        mask >>= _WORD_BITS
    return ",".join(reversed(words))


def add(tree: Tree, hw: Hardware) -> None:
    """Adds everything that is no device."""
    for path in _EMPTY:
        tree.directory(path)
    for module in _MODULES:
        tree.text(f"/module/{module}/initstate", "live")
    tree.text("/module/nvidia/version", hw.machine.gpu.driver_version)
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
    every = f"0-{len(nodes) - 1}" if len(nodes) > 1 else "0"
    for name in ("online", "possible", "has_cpu", "has_memory", "has_normal_memory"):
        tree.text(f"{base}/{name}", every)
    for index, node in enumerate(nodes):
        distances = (_LOCAL if other == index else _REMOTE for other in range(len(nodes)))
        tree.text(f"{base}/node{index}/cpulist", node.cpus)
        tree.text(f"{base}/node{index}/cpumap", cpu_mask(node.cpus))
        tree.text(f"{base}/node{index}/distance", " ".join(map(str, distances)))
        tree.text(f"{base}/node{index}/meminfo", f"Node {index} MemTotal:       {node.memory_gib * 1024 * 1024} kB")


def _cpus(tree: Tree, hw: Hardware) -> None:
    base = "/devices/system/cpu"
    placed = [(cpu, index) for index, node in enumerate(hw.machine.numa) for cpu in cpus(node.cpus)]
    for name in ("online", "possible", "present"):
        tree.text(f"{base}/{name}", f"0-{len(placed) - 1}")
    for cpu, node in placed:
        tree.text(f"{base}/cpu{cpu}/topology/physical_package_id", node)
        tree.link(f"{base}/cpu{cpu}/node{node}", f"/devices/system/node/node{node}")


def _dmi(tree: Tree, hw: Hardware) -> None:
    base = "/devices/virtual/dmi/id"
    tree.link("/class/dmi/id", base)
    tree.text(f"{base}/sys_vendor", hw.machine.vendor)
    tree.text(f"{base}/product_name", hw.machine.product)
    tree.text(f"{base}/product_serial", hw.identity.serial("S"), mode=0o400)
