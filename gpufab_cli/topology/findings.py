"""What is odd about a node's topology: a GPU off the NVLink fabric, rails that are far, places that nobody tells."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

from gpufab_cli.catalogue import Severity, catalogue
from gpufab_cli.module_utils.devices import Gpu, Nic
from gpufab_cli.topology.layout import Layout


@dataclass(frozen=True)
class TopoFinding:
    """A code of the catalogue, the device that it is about by its name in the matrix, and what was seen."""

    code: str
    device: str
    evidence: str

    @property
    def severity(self) -> Severity:
        """How bad the catalogue says it is."""
        return catalogue()[self.code].severity


def findings(found: Layout) -> tuple[TopoFinding, ...]:
    """All that is odd, worst first."""
    told = [*_nvlink(found), *_remote(found), *_far(found), *_placeless(found), *_ambiguous(found)]
    ranked = list(Severity)
    return tuple(sorted(told, key=lambda item: ranked.index(item.severity)))


def _nvlink(found: Layout) -> Iterator[TopoFinding]:
    """GPUs with fewer NVLinks than most."""
    if not found.links:
        return
    best = {gpu.pci: 0 for gpu in found.gpus}
    for (one, _), link in found.links.items():
        best[one] = max(best[one], int(link.removeprefix("NV")))
    usual = max(Counter(best.values()).items(), key=lambda item: (item[1], item[0]))[0]
    for pci, links in best.items():
        if links < usual:
            has = f"NV{links} at most" if links else "no NVLink to any GPU"
            yield TopoFinding("topo.nvlink", found.gpu_name(pci), f"{has}, the others have NV{usual}")


def _remote(found: Layout) -> Iterator[TopoFinding]:
    for item in found.rails.pairing.remote:
        rail = found.port_of(item.nic).name
        words = f"no rail on its own NUMA node; {rail} is {item.relation.value} away"
        yield TopoFinding("topo.remote-rail", found.gpu_name(item.gpu), words)


def _far(found: Layout) -> Iterator[TopoFinding]:
    """GPUs without a rail behind their switch, where others have one."""
    pairs = found.rails.pairing.pairs
    near = sorted({item.relation.value for item in pairs if item.relation.near})
    for item in pairs if near else ():
        if not item.relation.near:
            rail = found.port_of(item.nic).name
            words = f"its nearest rail {rail} is {item.relation.value} away, those of others {' or '.join(near)}"
            yield TopoFinding("topo.far-rail", found.gpu_name(item.gpu), words)


def _placeless(found: Layout) -> Iterator[TopoFinding]:
    """Devices that may be on any of several nodes: nothing is bound for them."""
    if not (found.rails.ports and found.gpus):
        return
    nodes = found.devices.numa.with_cpus
    devices: dict[str, Gpu | Nic] = {f"GPU{index}": gpu for index, gpu in enumerate(found.gpus)}
    devices |= {port.name: port.nic for port in found.ports if port.nic.pci in found.rails.ports}
    for name, device in devices.items():
        if not device.above:
            yield TopoFinding("topo.place-unknown", name, "its place in the PCI tree is not known")
        elif len(nodes) > 1 and found.devices.numa.local(device.numa_node) is None:
            words = f"its NUMA node is {device.numa_node}, and {len(nodes)} nodes have CPUs"
            yield TopoFinding("topo.place-unknown", name, words)


def _ambiguous(found: Layout) -> Iterator[TopoFinding]:
    """Several ports are as near to a GPU, and the source does not say which is the rail."""
    for gpu in found.gpus if not found.addressed else ():
        near = [item.nic for item in found.rails.pairing.pairs if item.gpu == gpu.pci]
        if len(near) > 1:
            names = ", ".join(found.port_of(nic).name for nic in near)
            words = f"{names} are equally near; a matrix does not show link layer, state and rate"
            yield TopoFinding("topo.ambiguous-rail", found.gpu_name(gpu.pci), words)
