"""Hosts that are put together otherwise than most of their like: a setting of the firmware, a card in another slot."""

from collections.abc import Iterator, Mapping

from gpufab_cli.audit.finding import FabricFinding
from gpufab_cli.audit.outliers import Traits, outliers
from gpufab_cli.module_utils.devices import Devices
from gpufab_cli.module_utils.snapshot import Snapshot
from gpufab_cli.module_utils.topology.relation import relation

CODE = "fabric.topology"


def traits(snapshot: Snapshot) -> Traits | None:
    """NUMA nodes with their CPUs, the nodes of the GPUs, and how near each GPU's nearest NIC is.

    A snapshot without NUMA nodes was taken by an older gpufab.
    """
    devices = snapshot.devices
    if not devices.gpus or not devices.numa.nodes:
        return None
    found = {
        "NUMA nodes": "; ".join(f"{node.id}: {node.cpus or 'no CPUs'}" for node in devices.numa.nodes),
        "NUMA nodes of the GPUs": ", ".join(str(gpu.numa_node) for gpu in devices.gpus),
        "nearest NICs of the GPUs": _nearest(devices),
    }
    return tuple((name, frozenset({value})) for name, value in found.items())


def _nearest(devices: Devices) -> str:
    """How near the nearest port of a network is to each GPU; VFs come and go and are none."""
    nics = [nic for nic in devices.nics if not nic.is_vf and not nic.nvswitch]
    near = ([relation(gpu, nic, devices.numa) for nic in nics] for gpu in devices.gpus)
    return ", ".join(min(each, key=lambda item: item.rank).value if each else "none" for each in near)


def differing(facts: Mapping[str, Traits]) -> Iterator[FabricFinding]:
    """One finding for each way in which hosts differ."""
    return outliers(facts, CODE)
