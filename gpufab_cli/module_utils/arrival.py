"""Wait for the ports that the kept wants name: their drivers come while the node boots, some after the restore began.

Each port is known by its PCI address. A network interface that is there may still be renamed, and its RDMA device comes
later than it. Nothing here waits for a GPU.
"""

import sys
from dataclasses import dataclass
from typing import Any, Callable, Dict, Iterable, List, Mapping, Optional, Tuple

from . import desired
from .change import ABSENT
from .devices import NET, PCI_DEVICES
from .features import WANT_TYPES
from .host import Host, HostError, Reader
from .place import AWAITED
from .schema import SchemaError

STEP = 0.25
"""Seconds between two looks."""
DEVICE_WAIT = 10.0
"""Seconds for the rest of a port, one part of which an event was about."""
SETTLE = 5
"""Seconds for udev to be done with the ports that are there: one that it is slow with is not worth the network."""
ROUNDS = 3
"""So often a restore is made at most where ports come anew while it works."""
UDEV = "/run/udev"
NVIDIA = "/sys/module/nvidia"


@dataclass(frozen=True)
class Port:
    """A pinned port and the parts of it that wants need."""

    pci: str
    rail: str
    netdev: bool = False
    rdma: bool = False


def _ports(want: Any, *, netdev: bool, rdma: bool) -> List[Port]:
    return [Port(port.pci, port.rail, netdev, rdma) for port in want.ports]


def _roce(want: Any) -> List[Port]:
    return _ports(want, netdev=True, rdma=True)


def _sriov(want: Any) -> List[Port]:
    return [Port(port.pci, port.rail, port.guid is None, port.guid is not None) for port in want.ports]


def _numa(want: Any) -> List[Port]:
    return _ports(want, netdev=False, rdma=True)


def _rails(want: Any) -> List[Port]:
    sockets = [Port(pci, "", netdev=True) for pci in want.socket_ports or ()]
    return [*(Port(rail.pci, rail.rail, rdma=True) for rail in want.rails), *sockets]


def _none(want: Any) -> List[Port]:  # noqa: ARG001
    return []


NEEDS: Mapping[str, Callable[[Any], List[Port]]] = {
    "roce": _roce,
    "sriov": _sriov,
    "dvfs": _none,  # of GPUs and CPUs
    "numa": _numa,
    "nccl_env": _rails,
    "mpi": _rails,
}
"""The ports that the want of each restored feature needs."""


def needed(host: Reader, device: Optional[str] = None) -> Tuple[Port, ...]:
    """The ports that the kept wants name, each once; of one device alone, if it is among them."""
    found: Dict[str, Port] = {}
    for name, want in desired.load(host, WANT_TYPES):
        if name in NEEDS and not isinstance(want, SchemaError):
            for port in NEEDS[name](want):
                old = found.get(port.pci, port)
                found[port.pci] = Port(
                    port.pci, old.rail or port.rail, old.netdev or port.netdev, old.rdma or port.rdma
                )
    return tuple(port for pci, port in found.items() if device in (None, pci))


def lacks(host: Reader, port: Port) -> str:
    """What of a port is not there yet, in words; "" where all is."""
    folder = f"{PCI_DEVICES}/{port.pci}"
    if not host.exists(folder):
        return "no such device"
    if not host.exists(f"{folder}/driver"):
        return "no driver has it"
    netdevs = _names(host, f"{folder}/net")
    if port.netdev and not netdevs:
        return "no network interface"
    # The ports of a RoCE LAG share the RDMA device of the first.
    bonded = any(host.exists(f"{NET}/{name}/bonding_slave") for name in netdevs)
    if port.rdma and not _names(host, f"{folder}/infiniband") and not bonded:
        return "no RDMA device"
    return ""


def _names(host: Reader, path: str) -> Tuple[str, ...]:
    names = host.names(path)
    return names if isinstance(names, tuple) else ()


def _settled(host: Reader, port: Port) -> bool:
    """Whether udev is done with the port, so that its names stay.

    udev writes an interface's entry after it has renamed it (systemd, udev-event.c); while it has nothing to do there
    is no queue. An RDMA device has an entry only where some rule says something about it.
    """
    if not host.exists(f"{UDEV}/control") or not host.exists(f"{UDEV}/queue"):
        return True
    folder = f"{PCI_DEVICES}/{port.pci}"
    entries = [f"n{host.read(f'{NET}/{name}/ifindex')}" for name in _names(host, f"{folder}/net")]
    entries += [f"+infiniband:{name}" for name in _names(host, f"{folder}/infiniband")]
    return all(host.exists(f"{UDEV}/data/{entry}") for entry in entries)


def wait(host: Host, ports: Iterable[Port], seconds: float) -> Tuple[float, Dict[Port, str]]:
    """Wait until all ports are there and udev is done with them.

    Returns:
        How many seconds it took, and the ports that did not come, each with what it lacks.
    """
    waited, patience = 0.0, float(SETTLE)
    ports = tuple(ports)
    while True:
        missing = {port: why for port in ports for why in [lacks(host, port)] if why}
        if not missing and (patience <= 0 or all(_settled(host, port) for port in ports)):
            return waited, missing
        if waited >= seconds:
            return waited, missing
        host.sleep(STEP)
        waited += STEP
        patience -= 0 if missing else STEP


def marks(host: Reader, ports: Iterable[Port]) -> Tuple[Any, ...]:
    """What tells whether ports came anew or were renamed: sysfs never uses an inode number twice."""
    found: List[Any] = []
    for port in ports:
        for kind in ("net", "infiniband"):
            folder = f"{PCI_DEVICES}/{port.pci}/{kind}"
            found += [(name, host.inode(f"{folder}/{name}")) for name in _names(host, folder)]
    return tuple(found)


def brought(host: Host, phase: str, device: Optional[str], seconds: float, restore: Callable[[], bool]) -> bool:
    """Wait for the ports, then restore; again where one came anew or was renamed meanwhile.

    Args:
        host: the node.
        phase: how the journal calls the restore.
        device: the PCI address of the one port that an event was about; None at boot.
        seconds: how long ports are waited for at boot. That is done once in a boot.
        restore: the restore, which says whether all could be brought back.
    """
    for _ in range(ROUNDS):
        before = _wait(host, phase, device, seconds)
        good = restore()
        if before is None or _look(host, phase, device) in (None, before):
            break
        _say(f"{phase}: a device came anew or was renamed meanwhile; once more")
    return good


def _wait(host: Host, phase: str, device: Optional[str], seconds: float) -> Optional[Tuple[Any, ...]]:
    """Wait; whatever goes wrong with that, the restore gets its turn. Returns the marks, None if there are none."""
    try:
        ports = needed(host, device)
        limit = DEVICE_WAIT if device is not None else 0.0 if host.exists(AWAITED) else seconds
        waited, missing = wait(host, ports, limit)
        for port, why in missing.items():
            _say(f"{phase}: {port.rail or 'port'} ({port.pci}) did not come within {waited:.0f} s: {why}")
        if waited and not missing:
            _say(f"{phase}: the ports are there after {waited:.0f} s")
    except Exception as error:  # also a mistake of gpufab's own
        _say(f"{phase}: waiting for ports: {type(error).__name__}: {error}")
    try:
        if device is None:  # before a port is looked at: one that comes later has an event of its own from now on
            host.put(AWAITED, b"")
    except HostError as error:
        _say(f"{phase}: {error}")
    return _look(host, phase, device)


def _look(host: Host, phase: str, device: Optional[str]) -> Optional[Tuple[Any, ...]]:
    try:
        driver = host.inode(NVIDIA) if phase == "late" else ABSENT
        return (driver, *marks(host, needed(host, device)))
    except Exception as error:
        _say(f"looking at ports: {type(error).__name__}: {error}")
        return None


def split(argv: List[str]) -> Tuple[List[str], int]:
    """The words that name a phase, and the seconds of ``--wait SECONDS`` behind them; 0 without."""
    if len(argv) > 1 and argv[-2] == "--wait" and argv[-1].isascii() and argv[-1].isdigit():
        return argv[:-2], int(argv[-1])
    return argv, 0


def _say(text: str) -> None:
    print(f"gpufab: {text}", file=sys.stderr)  # noqa: T201
