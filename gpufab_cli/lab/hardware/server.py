"""Two Unix sockets: one in the node, for the tools; one on the host, for the lab.

The tools' requests are NUL-separated fields, their answers a head line and raw bytes: the shim starts for each call of
a tool and must not pay for a JSON parser. The lab's are one line of JSON each way.
"""

import json
import logging
import os
import select
import socket
import socketserver
import struct
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from gpufab_cli.lab.hardware.tools.answer import Answer, Request

_CREDENTIALS = struct.Struct("3i")
_log = logging.getLogger(__name__)


class _Server(socketserver.ThreadingUnixStreamServer):
    daemon_threads = True
    request_queue_size = 128


def _serve(path: Path, handle: Callable[[socket.socket], None]) -> None:
    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            try:
                handle(self.request)
            except BrokenPipeError:
                _log.info("%s: the caller went away", path.name)

    path.unlink(missing_ok=True)
    server = _Server(str(path), Handler)
    path.chmod(0o666)
    threading.Thread(target=server.serve_forever, daemon=True, name=path.name).start()


def serve_tools(path: Path, answer: Callable[[Request], Answer]) -> None:
    """Answers the tools in the node, each call in its own thread."""

    def handle(link: socket.socket) -> None:
        pid, uid, _ = _CREDENTIALS.unpack(link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size))
        raw = b""
        while chunk := link.recv(65536):
            raw += chunk
        name, stdin, *argv = raw.decode("utf-8", "surrogateescape").split("\0")
        said = answer(Request(name, tuple(argv), uid, pid, lambda: _waits(link), stdin))
        out, err = said.stdout.encode(), said.stderr.encode()
        link.sendall(f"{said.rc}\t{said.program}\t{len(out)}\n".encode() + out + err)

    _serve(path, handle)


def _waits(link: socket.socket) -> bool:
    """Whether the caller is still at the other end."""
    poller = select.poll()
    poller.register(link, select.POLLHUP)
    return not poller.poll(0)


def serve_control(path: Path, answer: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
    """Answers the lab; the socket is root's alone."""

    def handle(link: socket.socket) -> None:
        with link.makefile("rw") as lines:
            said = answer(json.loads(lines.readline()))
            lines.write(json.dumps(said) + "\n")

    _serve(path, handle)
    path.chmod(0o600)


def ask_control(path: Path, **request: Any) -> dict[str, Any]:
    """Asks a hardware process.

    Raises:
        OSError: Nobody answers there.
    """
    with socket.socket(socket.AF_UNIX) as link:
        link.settimeout(30)
        link.connect(os.fspath(path))
        with link.makefile("rw") as lines:
            lines.write(json.dumps(request) + "\n")
            lines.flush()
            said = lines.readline()
    if not said:
        raise ConnectionError(f"{path} hung up")
    reply: dict[str, Any] = json.loads(said)
    return reply


def peer_pid(path: Path) -> int:
    """The process that listens on a socket.

    Raises:
        OSError: Nobody does.
    """
    with socket.socket(socket.AF_UNIX) as link:
        link.connect(os.fspath(path))
        raw = link.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _CREDENTIALS.size)
    return int(_CREDENTIALS.unpack(raw)[0])
