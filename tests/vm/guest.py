"""A machine's inside, by SSH as an operator comes: a key, a pinned host key, one connection shared by all commands."""

import subprocess
from pathlib import Path

USER = "ops"


class Guest:
    """How to reach one machine."""

    def __init__(self, name: str, port: int, key: Path, host_key: Path, folder: Path) -> None:
        self.name, self.port = name, port
        self.known_hosts = folder / f"{name}.known_hosts"
        self.config = folder / f"{name}.ssh_config"
        words = host_key.read_text().split()[:2]
        self.known_hosts.write_text(f"[127.0.0.1]:{port} {' '.join(words)}\n")
        self.config.write_text(
            f"Host {name}\n  HostName 127.0.0.1\n  Port {port}\n  User {USER}\n  IdentityFile {key}\n"
            f"  IdentitiesOnly yes\n  UserKnownHostsFile {self.known_hosts}\n  StrictHostKeyChecking yes\n"
        )

    def argv(self, line: str) -> list[str]:
        """A shell line's command line."""
        return ["ssh", "-F", str(self.config), "-o", "BatchMode=yes", "-o", "ConnectTimeout=30", self.name, line]

    def done(self, line: str, timeout: float = 120) -> "subprocess.CompletedProcess[str]":
        """Run a shell line as the user, whatever its end."""
        return subprocess.run(
            self.argv(line), capture_output=True, text=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL
        )

    def run(self, line: str, rc: int = 0, timeout: float = 120) -> str:
        """Run a shell line as the user; it must end as told."""
        done = self.done(line, timeout)
        assert done.returncode == rc, f"{line}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def root(self, script: str, rc: int = 0, timeout: float = 120) -> str:
        """Run a script as root; it must end as told."""
        done = subprocess.run(
            self.argv("sudo -n bash -s"), input=script, capture_output=True, text=True, timeout=timeout, check=False
        )
        assert done.returncode == rc, f"{script}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout

    def try_run(self, line: str, timeout: float) -> str:
        """What a shell line printed; nothing where it failed or nobody answered."""
        try:
            done = self.done(line, timeout)
        except subprocess.TimeoutExpired:
            return ""
        return done.stdout if done.returncode == 0 else ""

    def close(self) -> None:
        """Nothing is kept open."""
