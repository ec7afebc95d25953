"""Make one port's step, setting by setting in the order of its changes.

The plan orders them as the field does: DCBX and pause, map (and with it trust), buffers, PFC, ETS, ECN and CNP, ToS.
The same function undoes a step: it is given the changes turned round and in reverse order, because on mlx5 PFC and
global pause overwrite one another (mlx5_set_port_pfc, mlx5_set_port_pause).
"""

import functools
from typing import Any, Callable, Dict, List, Mapping, Optional, TypeVar, Union

from .. import before, named
from ..change import ABSENT, Absent, Change, Step
from ..devices import NET, PCI_DEVICES
from ..host import Host, HostError
from . import bnxt, probe, sysfs
from .backend import CongestionBackend, Ets, Port

LINK_SECONDS = 20
"""How long a link may take to come back after PFC has toggled it."""

# What the kernel starts with (cma_add_one in drivers/infiniband/core/cma.c); an undo returns to it, because what a
# device without a configfs directory was set to before cannot be read.
RDMA_CM_DEFAULTS = {"default_roce_mode": "RoCE v2", "default_roce_tos": "0"}

Changes = Mapping[str, Change]
T = TypeVar("T")


def apply(step: Step, host: Host) -> None:
    """Make every change of the step, each by the names that the port has then: PFC may take the link down, which lasts,
    and udev or rdma-core may rename meanwhile.

    Raises:
        HostError: at the first change that fails; those before it are made.
    """
    changes = {change.path[1]: change for change in step.changes}

    def now(act: Callable[[Port], T]) -> T:
        return named.by_name(lambda: _port(host, step.device), act)

    hidden = now(lambda port: _hidden(host, port, changes))
    if hidden and not step.undoes:
        before.keep(host, step, now(lambda port: bnxt.look(host, port, hidden)))
    for writer in dict.fromkeys(_WRITERS.get(name, _dcqcn) for name in changes):
        now(functools.partial(_write, writer, host, changes))
    found = before.kept(host, step) if hidden and step.undoes else None
    if found is not None:
        now(lambda port: bnxt.put_back(host, port, found))


def _write(writer: "Writer", host: Host, changes: "Changes", port: Port) -> None:
    writer(host, port, changes)


def _hidden(host: Host, port: Port, changes: Changes) -> List[str]:
    """The settings of a Broadcom port that cannot be read as they are found, or change more than is seen."""
    if _backend(host, port) is not bnxt:
        return []
    return [name for name in changes if _WRITERS.get(name, _dcqcn) in (_ecn, _cnp, _dcqcn, _traffic_class)]


def _port(host: Host, pci: str) -> Port:
    """The port as it is named now; a bonded one may have no RDMA device of its own."""
    return Port(pci, named.netdev(host, pci), named.rdma(host, pci))


def _rdma(port: Port) -> str:
    if port.rdma is None:
        raise HostError(f"{port.pci} does not have exactly one infiniband device any more")
    return port.rdma


def _backend(host: Host, port: Port) -> Optional[CongestionBackend]:
    driver = host.link(f"{PCI_DEVICES}/{port.pci}/driver")
    return probe.congestion_backend(host, port, driver.rpartition("/")[2] if isinstance(driver, str) else "")


def _congestion_backend(host: Host, port: Port) -> CongestionBackend:
    backend = _backend(host, port)
    if backend is None:
        raise HostError(probe.NOTHING)
    return backend


def _owner(host: Host, port: Port, changes: Changes) -> None:
    probe.dcb_backend(host).set_owner(host, port.netdev, changes["dcbx"].desired)


def _pause(host: Host, port: Port, changes: Changes) -> None:
    rx, tx = ("on" if flag else "off" for flag in changes["pause"].desired)
    host.run("ethtool", "-A", port.netdev, "rx", rx, "tx", tx)


def _map(host: Host, port: Port, changes: Changes) -> None:
    change = changes.get("dscp_priority")
    if change is not None:  # trust alone follows from a map that is as wanted
        probe.dcb_backend(host).set_dscp(host, port.netdev, change.current, change.desired)


def _cable(host: Host, port: Port, changes: Changes) -> None:
    probe.dcb_backend(host).set_cable(host, port.netdev, changes["cable_m"].desired)


def _buffers(host: Host, port: Port, changes: Changes) -> None:
    """Sizes before the map onto them: mlx5 refuses a lossless priority on a buffer without headroom."""
    backend = probe.dcb_backend(host)
    if "buffer_bytes" in changes:
        backend.set_buffer_bytes(host, port.netdev, changes["buffer_bytes"].desired)
    if "prio_buffer" in changes:
        backend.set_prio_buffer(host, port.netdev, changes["prio_buffer"].desired)


def _pfc(host: Host, port: Port, changes: Changes) -> None:
    carrier = host.read(f"{NET}/{port.netdev}/carrier")
    probe.dcb_backend(host).set_pfc(host, port.netdev, changes["pfc"].desired)
    if carrier == "1":
        _wait_for_link(host, port.pci)


def _wait_for_link(host: Host, pci: str) -> None:
    """Wait until mlx5 has brought the link back; the driver takes it down right after the request returns."""
    for _ in range(LINK_SECONDS * 5):
        host.sleep(0.2)
        if any(host.read(f"{NET}/{name}/carrier") == "1" for name in named.names(host, pci, "net")):
            return
    raise HostError(f"the link of {named.netdev(host, pci)} did not come back within {LINK_SECONDS} s")


def _ets(host: Host, port: Port, changes: Changes) -> None:
    """The three parts of ETS go in one request; those that do not change are set to what they are."""
    backend = probe.dcb_backend(host)
    now = backend.read(host, {port.netdev: False})[port.netdev]
    parts: Dict[str, Any] = {
        name: changes[name].desired if name in changes else getattr(now, name)
        for name in ("prio_tc", "tc_tsa", "tc_bw")
    }
    for value in parts.values():
        if not isinstance(value, tuple):
            raise HostError(value.reason)
    backend.set_ets(host, port.netdev, Ets(**parts))


def _ecn(host: Host, port: Port, changes: Changes) -> None:
    sides = {side: (changes[side].current, changes[side].desired) for side in ("ecn_np", "ecn_rp") if side in changes}
    _congestion_backend(host, port).set_ecn(host, port, sides)


def _cnp(host: Host, port: Port, changes: Changes) -> None:
    values = {name: changes[name].desired for name in ("cnp_dscp", "cnp_priority") if name in changes}
    _congestion_backend(host, port).set_cnp(host, port, values)


def _dcqcn(host: Host, port: Port, changes: Changes) -> None:
    values = {name: change.desired for name, change in changes.items() if name not in _WRITERS}
    _congestion_backend(host, port).set_dcqcn(host, port, values)


def _traffic_class(host: Host, port: Port, changes: Changes) -> None:
    value = changes["traffic_class"].desired
    if host.exists(sysfs.traffic_class_path(_rdma(port))):
        sysfs.set_traffic_class(host, _rdma(port), value)
    else:
        bnxt.set_traffic_class(host, port, value)


def _rdma_cm(host: Host, port: Port, changes: Changes) -> None:
    wanted: Dict[str, Union[str, int, Absent]] = {
        file: changes[name].desired
        for name, file in (("rdma_cm_mode", "default_roce_mode"), ("rdma_cm_tos", "default_roce_tos"))
        if name in changes
    }
    for file, value in wanted.items():
        sysfs.set_rdma_cm(host, _rdma(port), file, RDMA_CM_DEFAULTS[file] if isinstance(value, Absent) else value)
    if ABSENT in wanted.values():
        host.remove_directory(f"{sysfs.RDMA_CM}/{_rdma(port)}")


Writer = Callable[[Host, Port, Changes], None]
_WRITERS: Dict[str, Writer] = {
    "dcbx": _owner,
    "pause": _pause,
    "trust": _map,
    "dscp_priority": _map,
    "cable_m": _cable,
    "prio_buffer": _buffers,
    "buffer_bytes": _buffers,
    "pfc": _pfc,
    "prio_tc": _ets,
    "tc_tsa": _ets,
    "tc_bw": _ets,
    "ecn_np": _ecn,
    "ecn_rp": _ecn,
    "cnp_dscp": _cnp,
    "cnp_priority": _cnp,
    "traffic_class": _traffic_class,
    "rdma_cm_tos": _rdma_cm,
    "rdma_cm_mode": _rdma_cm,
}
