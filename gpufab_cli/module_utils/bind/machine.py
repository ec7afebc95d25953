"""The GPUs and rails of this node with their places, from sysfs and what NCCL is told. Runs without root."""

import re
from typing import Dict, Iterator, Optional, Tuple

from ..change import Unknown
from ..devices import INFINIBAND, above, gpus, numa_node
from ..host import Reader
from ..nccl_env import hca
from ..nccl_env.files import NCCL_CONF, other_file
from ..nccl_env.variables import HCA
from ..texts import natural
from ..topology import numa
from . import kernel
from .binding import BindError, Machine, Place

_INFORMATION = "/proc/driver/nvidia/gpus/{}/information"


def gather(host: Reader, *, nics: bool) -> Machine:
    """Look at the machine; NICs are those that NCCL is told to use, which a rank may be given its own of.

    Raises:
        BindError: some GPUs may be hidden from this process, and which cannot be told.
    """
    every = gpus(host)
    told = _told(host, tuple(gpu.pci for gpu in every))
    found = tuple(
        Place(str(n), gpu.pci, gpu.numa_node, gpu.above, _said(told.get(gpu.pci, ""), "GPU UUID"))
        for n, gpu in enumerate(every)
    )
    return Machine(found, tuple(_rails(host)) if nics else (), numa.gather(host), _hidden(host, found, told))


def _told(host: Reader, pcis: Tuple[str, ...]) -> Dict[str, str]:
    """What the driver tells of each GPU that it knows."""
    told: Dict[str, str] = {}
    for pci in pcis:
        text = host.read(_INFORMATION.format(pci))
        if isinstance(text, Unknown):
            raise BindError(f"what the driver tells of {pci} cannot be read ({text.reason}): GPUs cannot be counted")
        if isinstance(text, str):
            told[pci] = text
    return told


def _hidden(host: Reader, found: Tuple[Place, ...], told: Dict[str, str]) -> Tuple[str, ...]:
    """The GPUs that this process may not use: a scheduler's control group or a container keeps them from it.

    The driver tells each GPU's device file (NVIDIA driver README, "/proc interface"), in a container of the container's
    own GPUs alone. Where it tells of none, or no such file is made yet, nothing is kept from it; what the driver itself
    leaves out (NVreg_ExcludedGpus) nobody may use.
    """
    files = {pci: f"/dev/nvidia{_said(text, 'Device Minor')}" for pci, text in told.items()}
    unknown = [pci for pci, file in files.items() if natural(file[len("/dev/nvidia") :]) is None]
    if unknown:
        raise BindError(f"the driver does not tell the device file of {unknown[0]}: GPUs cannot be counted")
    left_out = {pci for pci, text in told.items() if _said(text, "GPU Excluded") == "Yes"}
    if any(host.exists(file) for file in files.values()):
        left_out |= {gpu.pci for gpu in found if gpu.pci not in files or not kernel.may_open(files[gpu.pci])}
    return tuple(gpu.pci for gpu in found if gpu.pci in left_out)


def _said(text: str, key: str) -> str:
    """What the driver says of a GPU by one of its keys; "" where it says nothing."""
    match = re.search(rf"^{key}:[ \t]*(\S+)[ \t]*$", text, re.MULTILINE)
    return match[1] if match else ""


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
