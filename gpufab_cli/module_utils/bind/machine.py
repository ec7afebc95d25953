"""The GPUs and rails of this node with their places, from sysfs and what NCCL is told. Runs without root."""

from typing import Dict, Iterator, Optional, Tuple

from ..devices import INFINIBAND, above, gpus, numa_node
from ..host import Reader
from ..nccl_env import hca
from ..nccl_env.files import NCCL_CONF, other_file
from ..nccl_env.variables import HCA
from ..topology import numa
from .binding import Machine, Place


def gather(host: Reader, *, nics: bool) -> Machine:
    """Look at the machine; NICs are those that NCCL is told to use, which a rank may be given its own of."""
    found = tuple(Place(str(n), gpu.pci, gpu.numa_node, gpu.above) for n, gpu in enumerate(gpus(host)))
    return Machine(found, tuple(_rails(host)) if nics else (), numa.gather(host))


def _rails(host: Reader) -> Iterator[Place]:
    text = host.read(NCCL_CONF)
    told = other_file(text).values.get(HCA, "") if isinstance(text, str) else ""
    names = host.names(INFINIBAND)
    for name in hca.parse(told).selected(names if isinstance(names, tuple) else ()) if told else ():
        pci = _function(host, name)
        if pci is not None:
            yield Place(name, pci, numa_node(host, pci), above(host, pci))


def _function(host: Reader, name: str) -> Optional[str]:
    """The PCI function of an RDMA device: /sys/class/infiniband/NAME is a link to …/ADDRESS/infiniband/NAME."""
    target = host.link(f"{INFINIBAND}/{name}")
    parts = target.split("/") if isinstance(target, str) else []
    return parts[-3] if parts[-2:-1] == ["infiniband"] else None


def exported(names: Tuple[str, ...]) -> Dict[str, str]:
    """What a rank is told of its NICs alone."""
    return {
        "NCCL_IB_HCA": hca.exact_list(names, "1"),
        "UCX_NET_DEVICES": ",".join(f"{name}:1" for name in names),
    }
