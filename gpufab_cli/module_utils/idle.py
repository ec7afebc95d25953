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


def users(host: Reader, devices: Devices) -> Union[Tuple[str, ...], Unknown]:
    """Who uses the node now, in words; empty when it is idle. What cannot be told is not idle."""
    compute = _compute(host) if any(gpu.driver == "nvidia" for gpu in devices.gpus) else ()
    if isinstance(compute, Unknown):
        return compute
    verbs = holders(host, VERBS)
    if isinstance(verbs, Unknown):
        return verbs
    jobs = tuple(f"{p.name} (process {p.pid}) holds an RDMA device" for p in verbs if p.name not in DAEMONS)
    return compute + jobs


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
