"""A machine's inside, by SSH as an operator comes: a key, a pinned host key, one connection that commands share."""

import subprocess
from pathlib import Path

from tests.vm.ports import free_port

USER = "ops"


class Guest:
    """How to reach one machine."""

    def __init__(self, name: str, key: Path, host_key: Path, folder: Path, socket: Path) -> None:
        self.name, self.key, self.socket = name, key, socket
        self.known_hosts = folder / f"{name}.known_hosts"
        self.config = folder / f"{name}.ssh_config"
        self._host_key = " ".join(host_key.read_text().split()[:2])
        self.port = 0
        self.move()

    def move(self) -> int:
        """Take another port of the host; connections over the old one are nobody's any more."""
        self.close()
        self.port = free_port()
        self.known_hosts.write_text(f"[127.0.0.1]:{self.port} {self._host_key}\n")
        shared = f"  ControlMaster auto\n  ControlPath {self.socket}\n  ControlPersist 600\n"
        self.config.write_text(self.text() + shared)
        return self.port

    def text(self) -> str:
        """Its lines of an ssh_config."""
        return (
            f"Host {self.name}\n  HostName 127.0.0.1\n  Port {self.port}\n  User {USER}\n  IdentityFile {self.key}\n"
            f"  IdentitiesOnly yes\n  UserKnownHostsFile {self.known_hosts}\n  StrictHostKeyChecking yes\n"
        )

    def argv(self, line: str) -> list[str]:
        """A shell line's command line."""
        return ["ssh", "-F", str(self.config), "-o", "BatchMode=yes", "-o", "ConnectTimeout=60", self.name, line]

    def done(self, line: str, script: str = "", timeout: float = 300) -> "subprocess.CompletedProcess[str]":
        """Run a shell line as the user, whatever its end."""
        return subprocess.run(
            self.argv(line), input=script, capture_output=True, text=True, timeout=timeout, check=False
        )

    def root(self, script: str, rc: int = 0, timeout: float = 300) -> str:
        """Run a script as root; it must end as told."""
        done = self.done("sudo -n bash -s", script, timeout)
        assert done.returncode == rc, f"{script}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def answers(self, line: str, timeout: float) -> str:
        """What a shell line printed; nothing where it failed or nobody answered."""
        try:
            done = self.done(line, timeout=timeout)
        except subprocess.TimeoutExpired:
            self.close()
            return ""
        return done.stdout.strip() if done.returncode == 0 else ""

    def close(self) -> None:
        """End the connection that commands share."""
        if self.socket.exists():
            argv = ["ssh", "-F", str(self.config), "-O", "exit", self.name]
            subprocess.run(argv, capture_output=True, timeout=30, check=False)
            self.socket.unlink(missing_ok=True)
