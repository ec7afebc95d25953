"""A topology as rows of a table, and as plain data for JSON."""

from collections.abc import Sequence
from typing import Any

from gpufab_cli.module_utils.devices import Gpu, Nic
from gpufab_cli.module_utils.topology.numa import NumaNode
from gpufab_cli.topology import matrix
from gpufab_cli.topology.findings import findings
from gpufab_cli.topology.layout import INVENTED, Layout, Port

NOT_SAID = "N/A"


def matrix_rows(found: Layout) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of the matrix, with the columns that nvidia-smi has."""
    names = list(found.columns)
    rows = [[name, *(found.cell(name, other) for other in names), *_affinity(found, name)] for name in names]
    return ["", *names, "CPU Affinity", "NUMA Affinity"], rows


def _affinity(found: Layout, name: str) -> tuple[str, str]:
    gpu = found.columns[name]
    if not isinstance(gpu, Gpu):
        return "", ""
    node = _local(found, gpu)
    return (node.cpus, str(node.id)) if node else (NOT_SAID, NOT_SAID)


def _local(found: Layout, device: Gpu | Nic) -> NumaNode | None:
    """The node to bind to for a device; None where it has no name."""
    node = found.devices.numa.local(device.numa_node)
    return node if node is not None and node.id < INVENTED else None


def port_rows(found: Layout) -> tuple[list[str], list[list[str]]]:
    """Heads and rows of the ports: what each is, what for, and whose."""
    numbers = {port: name for name, port in found.columns.items() if isinstance(port, Port)}
    rows = [
        [
            numbers.get(port, ""),
            port.name,
            _netdevs(port),
            port.nic.pci if found.addressed else "",
            _role(port),
            *_gpus(found, port),
        ]
        for port in found.ports
    ]
    return ["", "device", "netdev", "PCI", "role", "GPU", "distance"], rows


def _netdevs(port: Port) -> str:
    return ", ".join(netdev.name for netdev in port.nic.netdevs)


def _role(port: Port) -> str:
    return port.rail or (port.role.value if port.role is not None else "?")


def _gpus(found: Layout, port: Port) -> tuple[str, str]:
    pairing = found.rails.pairing
    own = [item for item in (*pairing.pairs, *pairing.remote) if item.nic == port.nic.pci]
    distances = dict.fromkeys(item.relation.value for item in own)
    return ", ".join(found.gpu_name(item.gpu) for item in own), ", ".join(distances)


def data(found: Layout) -> dict[str, Any]:
    """All of it. What the source does not say is null."""
    return {
        "name": found.name,
        "numa": [_node(node) for node in found.devices.numa.nodes if node.id < INVENTED],
        "gpus": [_gpu(found, index) for index in range(len(found.gpus))],
        "ports": [_port(found, port) for port in found.ports],
        "matrix": {name: {other: found.cell(name, other) for other in found.columns} for name in found.columns},
        "pairs": [
            {"gpu": found.gpu_name(item.gpu), "nic": found.port_of(item.nic).name, "distance": item.relation.value}
            for item in (*found.rails.pairing.pairs, *found.rails.pairing.remote)
        ],
        "findings": [
            {"code": item.code, "severity": item.severity.value, "device": item.device, "evidence": item.evidence}
            for item in findings(found)
        ],
    }


def _node(node: NumaNode) -> dict[str, Any]:
    socket = node.socket if node.socket >= 0 else None
    return {"node": node.id, "cpus": _cpus(node), "memory": node.memory, "socket": socket}


def _cpus(node: NumaNode) -> str | None:
    return None if node.cpus == matrix.NOT_SAID else node.cpus


def _gpu(found: Layout, index: int) -> dict[str, Any]:
    gpu = found.gpus[index]
    node = _local(found, gpu)
    told = {"pci": gpu.pci, "bridges": gpu.above[1:]} if found.addressed else {"pci": None, "bridges": None}
    return {"gpu": f"GPU{index}", "numa": node.id if node else None, "cpus": _cpus(node) if node else None, **told}


def _port(found: Layout, port: Port) -> dict[str, Any]:
    nic = port.nic
    node = _local(found, nic)
    told = {"pci": nic.pci, "bridges": nic.above[1:]} if found.addressed else {"pci": None, "bridges": None}
    return {
        "device": port.name,
        "netdevs": [netdev.name for netdev in nic.netdevs],
        "role": port.role.value if port.role is not None else None,
        "rail": port.rail or None,
        "numa": node.id if node else None,
        **told,
    }


def nic_legend(found: Layout) -> Sequence[str]:
    """Which device each NIC of the matrix is."""
    return [f"NIC{index}: {port.name}" for index, port in enumerate(found.rdma_ports)]
