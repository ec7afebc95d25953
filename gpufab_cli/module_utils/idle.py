"""Whether somebody uses the node: GPU compute processes, and programs that hold an RDMA device open."""

import re
from typing import Tuple, Union

from .change import Unknown
from .devices import Devices
from .host import Reader
from .processes import holders

VERBS = r"/dev/infiniband/uverbs\d+"
DAEMONS = frozenset(
    ("opensm", "ibacm", "rdma-ndd", "iwpmd", "srp_daemon", "nv-hostengine", "nvidia-persiste", "nv-fabricmanage")
)
"""Daemons that keep a device open without running a job, by the kernel's 15 characters of their name."""


def device_users(host: Reader, pci: str) -> Union[Tuple[str, ...], Unknown]:
    """Who holds the RDMA device of one PCI function open, in words."""
    names = host.names(f"/sys/bus/pci/devices/{pci}/infiniband_verbs")
    nodes = "|".join(re.escape(name) for name in names) if isinstance(names, tuple) else ""
    return _verbs_users(host, f"/dev/infiniband/({nodes})") if nodes else ()


def users(host: Reader, devices: Devices) -> Union[Tuple[str, ...], Unknown]:
    """Who uses the node now, in words; empty when it is idle. What cannot be told is not idle."""
    compute = _compute(host) if any(gpu.driver == "nvidia" for gpu in devices.gpus) else ()
    if isinstance(compute, Unknown):
        return compute
    verbs = _verbs_users(host, VERBS)
    return verbs if isinstance(verbs, Unknown) else compute + verbs


def _verbs_users(host: Reader, pattern: str) -> Union[Tuple[str, ...], Unknown]:
    found = holders(host, pattern)
    if isinstance(found, Unknown):
        return found
    return tuple(f"{p.name} (process {p.pid}) holds an RDMA device" for p in found if p.name not in DAEMONS)


def _compute(host: Reader) -> Union[Tuple[str, ...], Unknown]:
    output = host.query("nvidia-smi", "--query-compute-apps=pid,process_name", "--format=csv,noheader")
    if isinstance(output, Unknown):
        return output
    if output.rc != 0:
        return Unknown(f"nvidia-smi: {output.error}")
    lines = [line.strip() for line in output.stdout.splitlines() if line.strip()]
    found = [re.fullmatch(r"(\d+|\[[^\]]+\]), (.+)", line) for line in lines]
    if not all(found):
        return Unknown("nvidia-smi: printed what no known release prints")
    return tuple(f"{m.group(2)} (process {m.group(1)}) computes on a GPU" for m in found if m)
