"""Make one port's step, setting by setting in the order of its changes.

The plan orders them as the field does: pause, map (and with it trust), PFC, ETS, ECN and CNP, ToS. The same function
undoes a step: it is given the changes turned round and in reverse order, because on mlx5 PFC and global pause
overwrite one another (mlx5_set_port_pfc, mlx5_set_port_pause).
"""

from typing import Any, Callable, Dict, Mapping, Union

from ..change import ABSENT, Absent, Change, Step
from ..devices import NET, PCI_DEVICES
from ..host import Host, HostError
from . import dcb, sysfs

LINK_SECONDS = 20
"""How long a link may take to come back after PFC has toggled it."""

# What the kernel starts with (cma_add_one in drivers/infiniband/core/cma.c); an undo returns to it, because what a
# device without a configfs directory was set to before cannot be read.
RDMA_CM_DEFAULTS = {"default_roce_mode": "RoCE v2", "default_roce_tos": "0"}

Changes = Mapping[str, Change]


def apply(step: Step, host: Host) -> None:
    """Make every change of the step. Names are looked up afresh from the PCI address: udev may have renamed.

    Raises:
        HostError: at the first change that fails; those before it are made.
    """
    changes = {change.path[1]: change for change in step.changes}
    for writer in dict.fromkeys(_WRITERS[name] for name in changes):
        writer(host, step.device, changes)


def _only(host: Host, pci: str, kind: str) -> str:
    names = host.names(f"{PCI_DEVICES}/{pci}/{kind}")
    if not isinstance(names, tuple) or len(names) != 1:
        raise HostError(f"{pci} does not have exactly one {kind} device any more")
    return names[0]


def _pause(host: Host, pci: str, changes: Changes) -> None:
    rx, tx = ("on" if flag else "off" for flag in changes["pause"].desired)
    host.run("ethtool", "-A", _only(host, pci, "net"), "rx", rx, "tx", tx)


def _map(host: Host, pci: str, changes: Changes) -> None:
    change = changes.get("dscp_priority")
    if change is not None:  # trust alone follows from a map that is as wanted
        dcb.set_dscp(host, _only(host, pci, "net"), change.current, change.desired)


def _pfc(host: Host, pci: str, changes: Changes) -> None:
    netdev = _only(host, pci, "net")
    carrier = host.read(f"{NET}/{netdev}/carrier")
    dcb.set_pfc(host, netdev, changes["pfc"].desired)
    if carrier == "1":
        _wait_for_link(host, netdev)


def _wait_for_link(host: Host, netdev: str) -> None:
    """Wait until mlx5 has brought the link back; the driver takes it down right after the request returns."""
    for _ in range(LINK_SECONDS * 5):
        host.sleep(0.2)
        if host.read(f"{NET}/{netdev}/carrier") == "1":
            return
    raise HostError(f"the link of {netdev} did not come back within {LINK_SECONDS} s")


def _ets(host: Host, pci: str, changes: Changes) -> None:
    """The three parts of ETS go in one request; those that do not change are set to what they are."""
    netdev = _only(host, pci, "net")
    current = dcb.read_ets(host, netdev)
    if not isinstance(current, tuple):
        raise HostError(current.reason)
    now: Dict[str, Any] = dict(zip(("prio_tc", "tc_tsa", "tc_bw"), current))
    parts = {name: changes[name].desired if name in changes else value for name, value in now.items()}
    dcb.set_ets(host, netdev, **parts)


def _ecn_np(host: Host, pci: str, changes: Changes) -> None:
    change = changes["ecn_np"]
    sysfs.set_enabled(host, _only(host, pci, "net"), "roce_np", change.current, change.desired)


def _ecn_rp(host: Host, pci: str, changes: Changes) -> None:
    change = changes["ecn_rp"]
    sysfs.set_enabled(host, _only(host, pci, "net"), "roce_rp", change.current, change.desired)


def _cnp_dscp(host: Host, pci: str, changes: Changes) -> None:
    host.set(sysfs.ecn_path(_only(host, pci, "net"), "roce_np", "cnp_dscp"), str(changes["cnp_dscp"].desired))


def _cnp_priority(host: Host, pci: str, changes: Changes) -> None:
    path = sysfs.ecn_path(_only(host, pci, "net"), "roce_np", "cnp_802p_prio")
    host.set(path, str(changes["cnp_priority"].desired))


def _traffic_class(host: Host, pci: str, changes: Changes) -> None:
    sysfs.set_traffic_class(host, _only(host, pci, "infiniband"), changes["traffic_class"].desired)


def _rdma_cm(host: Host, pci: str, changes: Changes) -> None:
    rdma = _only(host, pci, "infiniband")
    wanted: Dict[str, Union[str, int, Absent]] = {
        file: changes[name].desired
        for name, file in (("rdma_cm_mode", "default_roce_mode"), ("rdma_cm_tos", "default_roce_tos"))
        if name in changes
    }
    for file, value in wanted.items():
        sysfs.set_rdma_cm(host, rdma, file, RDMA_CM_DEFAULTS[file] if isinstance(value, Absent) else value)
    if ABSENT in wanted.values():
        host.remove_directory(f"{sysfs.RDMA_CM}/{rdma}")


Writer = Callable[[Host, str, Changes], None]
_WRITERS: Dict[str, Writer] = {
    "pause": _pause,
    "trust": _map,
    "dscp_priority": _map,
    "pfc": _pfc,
    "prio_tc": _ets,
    "tc_tsa": _ets,
    "tc_bw": _ets,
    "ecn_np": _ecn_np,
    "ecn_rp": _ecn_rp,
    "cnp_dscp": _cnp_dscp,
    "cnp_priority": _cnp_priority,
    "traffic_class": _traffic_class,
    "rdma_cm_tos": _rdma_cm,
    "rdma_cm_mode": _rdma_cm,
}
