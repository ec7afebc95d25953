"""The kernel's calls that bind a process, as numactl makes them, each read back.

Source: sched_setaffinity(2), set_mempolicy(2), get_mempolicy(2); numbers from the kernel's system call tables. A
container's seccomp filter may forbid the two of memory policy (EPERM).
"""

import ctypes
import os
import platform
from typing import Dict, Iterable, Tuple

from .binding import BindError

MPOL_PREFERRED, MPOL_BIND = 1, 2
_NUMBERS: Dict[str, Tuple[int, int]] = {"x86_64": (238, 239), "aarch64": (237, 236)}
"""set_mempolicy and get_mempolicy of each architecture."""
_NODES = 1024
_BITS = 8 * ctypes.sizeof(ctypes.c_ulong)
_Mask = ctypes.c_ulong * (_NODES // _BITS)


def may_open(path: str) -> bool:
    """Whether this process may read and write a device file: its mode and the device rules of its control group say.

    access(2) asks both (fs/namei.c, inode_permission: devcgroup_inode_permission); nothing is opened or woken.
    """
    return os.access(path, os.R_OK | os.W_OK)


def bind_cpus(cpus: Iterable[int]) -> None:
    """Run on these CPUs only, as ``numactl --physcpubind`` has it: the kernel leaves out those that are not allowed.

    Raises:
        BindError: none of them is allowed.
    """
    wanted = set(cpus)
    try:
        os.sched_setaffinity(0, wanted)
    except OSError as error:
        raise BindError(f"CPUs {_listed(wanted)}: {error.strerror}; none is online and allowed here") from error
    if not os.sched_getaffinity(0) <= wanted:
        raise BindError(f"CPUs {_listed(wanted)}: the kernel kept {_listed(os.sched_getaffinity(0))}")


def bind_memory(nodes: Tuple[int, ...], mode: int) -> None:
    """Take memory from these nodes, as ``numactl --membind`` or ``--preferred`` has it.

    Raises:
        BindError: the kernel refuses, or does not keep it.
    """
    mask = _Mask()
    for node in nodes:
        mask[node // _BITS] |= 1 << (node % _BITS)
    _call(0, f"memory of node {_listed(nodes)}", ctypes.c_long(mode), mask, ctypes.c_ulong(_NODES + 1))
    if memory_policy() != (mode, nodes):
        raise BindError(f"memory of node {_listed(nodes)}: the kernel kept {memory_policy()}")


def memory_policy() -> Tuple[int, Tuple[int, ...]]:
    """The process's memory policy and its nodes."""
    mode, mask = ctypes.c_int(-1), _Mask()
    zero = ctypes.c_ulong(0)
    _call(1, "memory policy", ctypes.byref(mode), mask, ctypes.c_ulong(_NODES + 1), zero, zero)
    return mode.value, tuple(node for node in range(_NODES) if mask[node // _BITS] >> (node % _BITS) & 1)


def _call(which: int, what: str, *arguments: object) -> None:
    numbers = _NUMBERS.get(platform.machine())
    if numbers is None:
        raise BindError(f"{what}: not known how to set on {platform.machine()}; --memory none leaves it")
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(ctypes.c_long(numbers[which]), *arguments) != 0:
        error = os.strerror(ctypes.get_errno())
        raise BindError(f"{what}: {error}; --memory none leaves it, where a container forbids it")


def _listed(numbers: Iterable[int]) -> str:
    return ",".join(map(str, sorted(numbers)))
