"""Whether somebody uses the node or one of its devices: jobs on GPUs, programs and virtual machines, and the kernel.

Asked immediately before each step with impact. A job that starts between the answer and the step is still possible: a
node is drained first, and this is the last look.
"""

import re
from typing import Iterator, List, Mapping, Tuple, Union

from . import kernel_users, vfs
from .change import Unknown
from .devices import Devices
from .host import Reader
from .vfs import Users, Vf


def device_users(host: Reader, pci: str) -> Users:
    """Who uses one PCI function, in words: its VFs are lost to their users with it."""
    if not pci:
        return ()
    below = vfs.read(host, pci)
    held = vfs.holders(host, (pci, *(vf.pci for vf in below)))
    return _together(_in_words(host, held, below), _kernel(host, pci))


def users(host: Reader, devices: Devices, device: str = "") -> Users:
    """Who uses the node now, in words; empty when it is idle. What cannot be told is not idle.

    Args:
        host: the node.
        devices: what it has.
        device: the PCI function about to be changed; "" for the whole node. Any job makes the node busy. Storage and
            the like are there on a drained node too: they count where they work over this function, or may.
    """
    compute = _compute(host) if any(gpu.driver == "nvidia" for gpu in devices.gpus) else ()
    if isinstance(compute, Unknown):
        return compute
    below = tuple(vf for nic in devices.nics if not nic.is_vf for vf in vfs.read(host, nic.pci))
    return _together(compute, _in_words(host, vfs.holders(host), below), _kernel(host, device))


def _together(*parts: Users) -> Users:
    found: List[str] = []
    for part in parts:
        if isinstance(part, Unknown):
            return part
        found += part
    return vfs.some(found)


def _in_words(host: Reader, held: vfs.Holders, below: Tuple[Vf, ...]) -> Users:
    if isinstance(held, Unknown):
        return held
    return (
        *_holders(held, {vf.pci: f"VF {vf.index} ({vf.pci})" for vf in below}),
        *(words for vf in below for words in vfs.elsewhere(host, vf)),
    )


def _holders(held: vfs.Held, names: Mapping[str, str]) -> Iterator[str]:
    for file, processes in held.holders.items():
        functions = sorted(held.files[file])
        what = ", ".join(names.get(pci, pci) for pci in functions)
        if not set(functions) & set(names):
            what = "an RDMA device" if "/infiniband/" in file.path else f"{what or 'a device'} through VFIO"
        yield from (f"{process.name} (process {process.pid}) holds {what}" for process in processes)


def _kernel(host: Reader, device: str) -> Users:
    found = kernel_users.find(host)
    if isinstance(found, Unknown):
        return found
    return tuple(user.words for user in found if not device or user.functions is None or device in user.functions)


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
