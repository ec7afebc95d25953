"""nvidia-smi topo -m: how each GPU and RDMA device is connected to each other."""

from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.sysfs.system import cpus
from gpufab_cli.lab.machine import GpuPlace, Place

_LEGEND = """
Legend:

  X    = Self
  SYS  = Connection traversing PCIe as well as the SMP interconnect between NUMA nodes (e.g., QPI/UPI)
  NODE = Connection traversing PCIe as well as the interconnect between PCIe Host Bridges within a NUMA node
  PHB  = Connection traversing PCIe as well as a PCIe Host Bridge (typically the CPU)
  PXB  = Connection traversing multiple PCIe bridges (without traversing the PCIe Host Bridge)
  PIX  = Connection traversing at most a single PCIe bridge
  NV#  = Connection traversing a bonded set of # NVLinks

"""


def text(hw: Hardware) -> str:
    """What it prints, the underlined head included."""
    gpus, nics = hw.machine.gpus, _nics(hw)
    names = [f"GPU{index}" for index in range(len(gpus))] + [f"NIC{index}" for index in range(len(nics))]
    places: list[Place] = [*gpus, *(place for _, place in nics)]
    head = "\t".join([*names, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"])
    rows = [
        "\t".join([name, *(_cell(hw, place, other) for other in places), *_affinity(hw, place)])
        for name, place in zip(names, places, strict=True)
    ]
    legend = "".join(f"  NIC{index}: {rdma}\n" for index, (rdma, _) in enumerate(nics))
    known = f"NIC Legend:\n\n{legend}\n" if nics else ""
    return f"\t\x1b[4m{head}\x1b[0m\n" + "".join(f"{row}\n" for row in rows) + _LEGEND + known


def _nics(hw: Hardware) -> list[tuple[str, Place]]:
    """RDMA devices in the order of their addresses, whatever their numbers."""
    ports: list[tuple[str, Place]] = [(port.rdma, port) for port in hw.machine.ports if port.rdma]
    return sorted([*ports, *((item.rdma, item) for item in hw.machine.managers)], key=lambda item: item[1].pci)


def _cell(hw: Hardware, one: Place, other: Place) -> str:
    if one is other:
        return " X "
    if hw.machine.gpu.nvlinks and isinstance(one, GpuPlace) and isinstance(other, GpuPlace):
        return f"NV{hw.machine.gpu.nvlinks}"
    if one.behind[:1] == other.behind[:1] != ():
        # Behind one root port: one switch apart where nothing but their own downstream ports differ.
        shared = sum(a == b for a, b in zip(one.behind, other.behind, strict=False))
        return "PIX" if max(len(one.behind), len(other.behind)) - shared <= 1 else "PXB"
    if one.root == other.root:
        return "PHB"
    bindable = [node for node in hw.machine.numa if cpus(node.cpus)]
    return "NODE" if one.numa == other.numa or len(bindable) == 1 else "SYS"


def _affinity(hw: Hardware, place: Place) -> list[str]:
    """The columns behind the matrix; the node of a GPU's memory stands one tab further than its head."""
    if not isinstance(place, GpuPlace):
        return ["", ""]
    memory = "N/A" if place.memory_node < 0 else str(place.memory_node)
    return [hw.machine.cpus_near(place.numa), "N/A" if place.numa < 0 else str(place.numa), "", memory]
