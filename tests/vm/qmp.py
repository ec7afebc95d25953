"""QEMU's machine protocol over a socket: commands, answers, and the human monitor's commands for what has no other."""

import json
import socket
from pathlib import Path
from typing import Any


class RefusedError(RuntimeError):
    """QEMU did not do what it was told."""


class Monitor:
    """A connection to one machine."""

    def __init__(self, path: Path, timeout: float = 120) -> None:
        self._socket = socket.socket(socket.AF_UNIX)
        self._socket.settimeout(timeout)
        self._socket.connect(str(path))
        self._lines = self._socket.makefile("r")
        self._lines.readline()  # its greeting
        self.events: list[str] = []
        self.command("qmp_capabilities")

    def command(self, name: str, **arguments: Any) -> Any:
        """Run a command and give its answer."""
        said = {"execute": name, "arguments": {key.replace("_", "-"): value for key, value in arguments.items()}}
        self._socket.sendall(json.dumps(said).encode() + b"\n")
        while line := self._lines.readline():
            answer = json.loads(line)
            if "event" in answer:
                self.events.append(answer["event"])
            elif "error" in answer:
                raise RefusedError(f"{name}: {answer['error']['desc']}")
            elif "return" in answer:
                return answer["return"]
        raise RefusedError(f"{name}: the machine has ended")

    def human(self, line: str) -> str:
        """A line of the human monitor; what it prints is an error for those that print nothing when all is well."""
        return str(self.command("human-monitor-command", command_line=line))

    def close(self) -> None:
        self._socket.close()
