"""Every feature by name, in the order in which they are applied and restored. Adding one is a function and a row.

Each is imported when it is first asked for: an audit of one feature does not pay for starting all of them on every
node. They are import statements, not names, so that Ansible sees what a module needs.
"""

from typing import Any, Callable, Dict, Iterator, Mapping


def _node() -> Any:
    from . import archive
    from .node.feature import Node

    return Node(archive)


def _kernel() -> Any:
    from .kernel.feature import Kernel

    return Kernel()


def _ofed() -> Any:
    from .packages.feature import OFED

    return OFED


def _nccl() -> Any:
    from .packages.feature import NCCL

    return NCCL


def _firmware() -> Any:
    from .firmware.feature import Firmware

    return Firmware()


def _roce() -> Any:
    from .roce.feature import Roce

    return Roce()


def _links() -> Any:
    from .links.feature import Links

    return Links()


def _sriov() -> Any:
    from .sriov.feature import Sriov

    return Sriov()


def _dvfs() -> Any:
    from .dvfs.feature import Dvfs

    return Dvfs()


def _gpu_stack() -> Any:
    from .gpu_stack.feature import GpuStack

    return GpuStack()


def _limits() -> Any:
    from .limits.feature import Limits

    return Limits()


def _numa() -> Any:
    from .numa.feature import Numa

    return Numa()


def _nccl_env() -> Any:
    from .nccl_env.feature import NcclEnv

    return NcclEnv()


def _mpi() -> Any:
    from .mpi.feature import Mpi

    return Mpi()


_MAKERS: Dict[str, Callable[[], Any]] = {
    "node": _node,
    "kernel": _kernel,
    "ofed": _ofed,
    "nccl": _nccl,
    "firmware": _firmware,
    "roce": _roce,
    "links": _links,
    "sriov": _sriov,
    "dvfs": _dvfs,
    "gpu_stack": _gpu_stack,
    "limits": _limits,
    "numa": _numa,
    "nccl_env": _nccl_env,
    "mpi": _mpi,
}


class _Late(Mapping[str, Any]):
    """A value for each feature, made when it is first asked for."""

    def __init__(self, make: Callable[[str], Any]) -> None:
        self._make = make
        self._made: Dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._made:
            self._made[name] = self._make(name)
        return self._made[name]

    def __contains__(self, name: object) -> bool:
        return name in _MAKERS

    def __iter__(self) -> Iterator[str]:
        return iter(_MAKERS)

    def __len__(self) -> int:
        return len(_MAKERS)


FEATURES: Mapping[str, Any] = _Late(lambda name: _MAKERS[name]())
WANT_TYPES: Mapping[str, type] = _Late(lambda name: FEATURES[name].want_type)
SEEN_TYPES: Mapping[str, type] = _Late(lambda name: FEATURES[name].seen_type)
