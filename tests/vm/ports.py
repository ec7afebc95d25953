"""Ports of the host."""

import socket


def free_port() -> int:
    """A TCP port of 127.0.0.1 that nobody has now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
