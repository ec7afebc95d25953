"""Live facts of the node's network interfaces, and the rail cables' far ends.

A socket belongs for life to the network namespace it was made in: made once in a thread that visits the node, it
answers interface ioctls from then on without any process inside.
"""

import array
import ctypes
import errno
import fcntl
import os
import socket
import struct
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from gpufab_cli.lab.shell import run

_CLONE_NEWNET = 0x40000000
_SIOCGIFCONF, _SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8912, 0x8913, 0x8914
_SIOCGIFMTU, _SIOCSIFMTU, _SIOCGIFHWADDR, _SIOCGIFINDEX = 0x8921, 0x8922, 0x8927, 0x8933
_ARPHRD_ETHER = 1
_IFREQ = 40  # sizeof(struct ifreq) on 64-bit
IFF_UP, IFF_RUNNING = 0x1, 0x40
_RTMGRP = 0x1 | 0x10 | 0x100  # interfaces, their IPv4 addresses, their IPv6 addresses (linux/rtnetlink.h)
_MESSAGE = 65536
T = TypeVar("T")


def _socket_in(netns: Path, make: Callable[[], socket.socket]) -> socket.socket:
    """Makes a socket in another network namespace; only a throw-away thread goes there."""
    made: list[socket.socket] = []
    failed: list[OSError] = []

    def visit() -> None:
        handle = os.open(netns, os.O_RDONLY | os.O_CLOEXEC)
        try:
            if ctypes.CDLL(None, use_errno=True).setns(handle, _CLONE_NEWNET):
                failed.append(OSError(ctypes.get_errno(), f"setns {netns}"))
            else:
                made.append(make())
        finally:
            os.close(handle)

    thread = threading.Thread(target=visit)
    thread.start()
    thread.join()
    if failed:
        raise failed[0]
    return made[0]


class Links:
    """Interface ioctls in one network namespace."""

    def __init__(self, netns: Path) -> None:
        self._socket = _socket_in(netns, partial(socket.socket, socket.AF_INET, socket.SOCK_DGRAM))

    def close(self) -> None:
        """Lets go of the namespace, which ends it when nothing else holds it."""
        self._socket.close()

    def _ask(self, request: int, name: str, body: bytes = b"") -> bytes:
        ifreq = struct.pack(f"16s{_IFREQ - 16}s", name.encode(), body)
        return fcntl.ioctl(self._socket, request, ifreq)[16:]

    def _flags(self, name: str) -> int:
        return int(struct.unpack_from("=H", self._ask(_SIOCGIFFLAGS, name))[0])

    def mtu(self, name: str) -> int:
        """MTU in bytes."""
        return int(struct.unpack_from("=i", self._ask(_SIOCGIFMTU, name))[0])

    def set_mtu(self, name: str, mtu: int) -> None:
        """Sets the MTU in bytes."""
        self._ask(_SIOCSIFMTU, name, struct.pack("=i", mtu))

    def index(self, name: str) -> int:
        """Interface index."""
        return int(struct.unpack_from("=i", self._ask(_SIOCGIFINDEX, name))[0])

    def mac(self, name: str) -> str:
        """Hardware address."""
        return self._ask(_SIOCGIFHWADDR, name)[2:8].hex(":")

    def hardware_type(self, name: str) -> int:
        """ARPHRD_* number: 1 Ethernet, 772 loopback."""
        return int(struct.unpack_from("=H", self._ask(_SIOCGIFHWADDR, name))[0])

    def is_ethernet(self, name: str) -> bool:
        """Whether it is an Ethernet interface."""
        return self.hardware_type(name) == _ARPHRD_ETHER

    def flags(self, name: str) -> int:
        """IFF_* bits."""
        return self._flags(name)

    def admin_up(self, name: str) -> bool:
        """Whether the interface is set up."""
        return bool(self._flags(name) & IFF_UP)

    def carrier(self, name: str) -> bool:
        """Whether the cable carries, as far as a set-up interface can tell."""
        return bool(self._flags(name) & IFF_RUNNING)

    def set_up(self, name: str, up: bool) -> None:
        """Sets an interface up or down."""
        flags = self._flags(name)
        wanted = flags | IFF_UP if up else flags & ~IFF_UP
        self._ask(_SIOCSIFFLAGS, name, struct.pack("=H", wanted & 0xFFFF))

    def ipv4(self, name: str) -> list[str]:
        """The IPv4 addresses of an interface in the order they were added."""
        space = array.array("B", bytes(_IFREQ * 128))
        answer = fcntl.ioctl(self._socket, _SIOCGIFCONF, struct.pack("iL", len(space), space.buffer_info()[0]))
        used = int(struct.unpack_from("i", answer)[0])
        entries = (space[at : at + _IFREQ].tobytes() for at in range(0, used, _IFREQ))
        return [socket.inet_ntoa(e[20:24]) for e in entries if e[:16].rstrip(b"\0").decode() == name]


class _Memory:
    """What was read of a network namespace, forgotten whenever its interfaces or addresses change.

    The kernel tells of a change before the call that makes it returns (rtnetlink(7)), so nobody sees what was before.
    Of a new IPv6 address it tells once nobody else is found to have it; until then it is not seen.
    """

    def __init__(self, netns: Path) -> None:
        self._news = _socket_in(netns, self._subscribe)
        self._known: dict[object, Any] = {}
        self._lock = threading.Lock()

    @staticmethod
    def _subscribe() -> socket.socket:
        news = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE)
        news.bind((0, _RTMGRP))
        return news

    def close(self) -> None:
        self._news.close()

    def get(self, key: object, read: Callable[[], T]) -> T:
        with self._lock:
            if self._changed():
                self._known.clear()
            if key not in self._known:
                self._known[key] = read()
            found: T = self._known[key]
            return found

    def _changed(self) -> bool:
        changed = False
        try:
            while self._news.recv(_MESSAGE, socket.MSG_DONTWAIT):
                changed = True
        except BlockingIOError:
            return changed
        except OSError:  # there were more than the socket holds
            return True
        return changed


class Node(Links):
    """The node's own interfaces; `pid` is any process inside."""

    def __init__(self, pid: int) -> None:
        netns = Path(f"/proc/{pid}/ns/net")
        super().__init__(netns)
        self.pid = pid
        self._proc = Path(f"/proc/{pid}/net")
        self._memory = _Memory(netns)

    def close(self) -> None:
        """Lets go of the namespace."""
        self._memory.close()
        super().close()

    def ip(self, *argv: str) -> str:
        """What the host's iproute2 says when it is run on the node's interfaces.

        Raises:
            LabError: It fails.
        """
        return run(["nsenter", f"--net=/proc/{self.pid}/ns/net", "ip", *argv])

    def names(self) -> list[str]:
        """All interfaces the node has now, rails and others."""
        return list(self._memory.get("names", self._names))

    def _names(self) -> list[str]:
        lines = (self._proc / "dev").read_text().splitlines()[2:]
        return [line.split(":", 1)[0].strip() for line in lines]

    def ipv4(self, name: str) -> list[str]:
        """The IPv4 addresses of an interface in the order they were added."""
        return list(self._memory.get((4, name), partial(super().ipv4, name)))

    def ipv6(self, name: str) -> list[bytes]:
        """The IPv6 addresses of an interface, packed."""
        rows = self._memory.get(6, self._addresses)
        return [address for holder, address in rows if holder == name]

    def _addresses(self) -> list[tuple[str, bytes]]:
        rows = (row.split() for row in (self._proc / "if_inet6").read_text().splitlines())
        return [(row[5], bytes.fromhex(row[0])) for row in rows]

    def counters(self, name: str) -> list[int]:
        """Columns of /proc/net/dev: eight received, eight sent."""
        for line in (self._proc / "dev").read_text().splitlines()[2:]:
            head, _, rest = line.partition(":")
            if head.strip() == name:
                return [int(word) for word in rest.split()]
        raise OSError(errno.ENODEV, os.strerror(errno.ENODEV))


def no_device() -> OSError:
    """The error of an interface that is not there."""
    return OSError(errno.ENODEV, os.strerror(errno.ENODEV))
