"""Ports by the names that they have now: udev, drivers and rdma-core rename at any time, a PCI address stays."""

from typing import Callable, Optional, Tuple, TypeVar

from .devices import PCI_DEVICES
from .host import Host, HostError, Reader

T = TypeVar("T")
R = TypeVar("R")


def names(host: Reader, pci: str, kind: str) -> Tuple[str, ...]:
    """The netdevs (``net``) or RDMA devices (``infiniband``) of a function."""
    found = host.names(f"{PCI_DEVICES}/{pci}/{kind}")
    return found if isinstance(found, tuple) else ()


def netdev(host: Reader, pci: str) -> str:
    """The one netdev of a function.

    Raises:
        HostError: it has none, or several.
    """
    found = names(host, pci, "net")
    if len(found) != 1:
        raise HostError(f"{pci} has {len(found)} netdevs, not one")
    return found[0]


def rdma(host: Reader, pci: str) -> Optional[str]:
    """The one RDMA device of a function; None where it has none, as in a bond, or several."""
    found = names(host, pci, "infiniband")
    return found[0] if len(found) == 1 else None


def wait_for_netdev(host: Host, pci: str, seconds: int) -> None:
    """Wait until a function has its netdev (again).

    Raises:
        HostError: it has none, or several, after that time.
    """
    for _ in range(seconds * 5):
        if len(names(host, pci, "net")) == 1:
            return
        host.sleep(0.2)
    netdev(host, pci)


def by_name(find: Callable[[], T], act: Callable[[T], R]) -> R:
    """Do something by the names that hold now; where it fails and they are others by then, once more by those.

    Raises:
        HostError: it fails, and no rename is the reason.
    """
    found = find()
    try:
        return act(found)
    except HostError as error:
        try:
            now = find()
        except HostError:
            raise error from None
        if now == found:
            raise
    return act(now)
