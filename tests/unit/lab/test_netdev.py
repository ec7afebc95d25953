"""What is remembered of a node's interfaces, and how long."""

import socket
from pathlib import Path

import pytest

from gpufab_cli.lab.hardware import netdev


@pytest.fixture
def told(monkeypatch):
    """The kernel's end of the socket that tells of changes."""
    kernel, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
    monkeypatch.setattr(netdev, "_socket_in", lambda *_: ours)
    yield kernel
    kernel.close()
    ours.close()


def test_what_was_read_holds_until_the_kernel_tells_of_a_change(told):
    memory, values = netdev._Memory(Path("/proc/1/ns/net")), iter(range(9))

    def look(key="names"):
        return memory.get(key, lambda: next(values))

    assert [look(), look(), look("addresses"), look()] == [0, 0, 1, 0]
    told.send(b"a link")
    told.send(b"and its address")
    assert [look(), look("addresses"), look()] == [2, 3, 2]


def test_more_news_than_the_socket_holds_is_a_change(told):
    memory, values = netdev._Memory(Path("/proc/1/ns/net")), iter(range(9))
    memory.get("names", lambda: next(values))
    memory._news.close()  # recv fails, as it does with ENOBUFS
    assert memory.get("names", lambda: next(values)) == 1
