"""One emulated node: a hardware process and a container, kept in step."""

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpufab_cli.lab import files, podman
from gpufab_cli.lab.errors import LabError
from gpufab_cli.lab.files import NodeRecord
from gpufab_cli.lab.hardware.boot import IN_NODE
from gpufab_cli.lab.hardware.process import Settings
from gpufab_cli.lab.hardware.server import ask_control, peer_pid
from gpufab_cli.lab.railnet import Site
from gpufab_cli.lab.shell import run, succeeds

_HARDWARE_START_S = 15
_BOOT_S = 60
_POLL_S = 0.1
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Node:
    """One node of a lab."""

    record: NodeRecord
    container: str
    netns: str
    token: str
    site: Site
    state: Path
    run: Path

    @property
    def settings(self) -> Settings:
        """What its hardware process is told."""
        record, site = self.record, self.site
        return Settings(
            record.name,
            record.number,
            record.machine,
            self.netns,
            self.token,
            self.state,
            self.run,
            site.mtu,
            site.ipv4,
        )

    @property
    def host_key(self) -> Path:
        """Its SSH host key."""
        return self.state / "ssh" / "ssh_host_ed25519_key"

    # ---- hardware ----------------------------------------------------------------------------------------------------

    def ask(self, verb: str, **request: Any) -> dict[str, Any]:
        """Asks the hardware process.

        Raises:
            LabError: It does not answer, or refuses.
        """
        try:
            reply = ask_control(self.settings.control, token=self.token, verb=verb, **request)
        except OSError:
            raise LabError(f"the hardware process of {self.record.name} is gone", hint="gpufab lab up") from None
        if "error" in reply:
            raise LabError(f"{self.record.name}: {reply['error']}")
        return reply

    def hardware_lives(self) -> bool:
        """Whether the hardware process answers and /sys is there."""
        try:
            self.ask("status")
            return (self.settings.sys / "class" / "net").is_dir()
        except (LabError, OSError):
            return False

    def power_hardware(self) -> bool:
        """Starts the hardware process unless it lives; true if it had to be started."""
        if self.hardware_lives():
            return False
        self.end_hardware()
        for folder in (self.state, self.settings.sys, self.settings.folder):
            folder.mkdir(parents=True, exist_ok=True)
        path = self.settings.save()
        log = self.state / "hardware.log"
        with log.open("a") as output:
            process = subprocess.Popen(
                [sys.executable, "-m", "gpufab_cli.lab.hardware.process", str(path)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
                cwd="/",
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
        self.wait_for(
            lambda: self.hardware_lives() or process.poll() is not None, _HARDWARE_START_S, "hardware process"
        )
        if process.poll() is not None:
            lines = log.read_text().splitlines()
            raise LabError(f"the hardware process of {self.record.name} ended: {lines[-1]}", hint=f"see {log}")
        return True

    def end_hardware(self) -> None:
        """Unmounts /sys, dead or alive, and ends the process behind it."""
        pid = self._hardware_pid()
        while _is_mounted(self.settings.sys):
            run(["umount", "--lazy", str(self.settings.sys)])
        if pid:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGTERM)
        self.settings.control.unlink(missing_ok=True)

    def _hardware_pid(self) -> int | None:
        """The process at the other end of the socket, this lab's or an earlier one's."""
        try:
            return peer_pid(self.settings.control)
        except OSError:
            return None

    # ---- container ---------------------------------------------------------------------------------------------------

    def ensure_container(self, image: str, known: dict[str, Any] | None) -> None:
        """Makes and starts the container; one of another image is replaced, one whose hardware died is power-cycled."""
        if self.power_hardware() and known:
            podman.stop(self.container, seconds=1)  # without /sys its system cannot end in good order
        files.node_keys(self.state / "ssh", self.state.parent.parent / "id_ed25519")
        if known and podman.image_id(image) != known["ImageID"]:
            podman.remove(self.container)
            known = None
        if known is None:
            podman.create(self._container(image))
        podman.start(self.container)

    def _container(self, image: str) -> podman.Container:
        mounts = (
            (self.settings.sys, "/sys", "rw"),
            (self.settings.folder, IN_NODE, "ro"),
            (self.state / "ssh", "/etc/ssh/lab", "ro"),
        )
        return podman.Container(self.container, self.record.name, image, self.record.ssh_port, self.token, mounts)

    def wait_up(self) -> None:
        """Waits until systemd has settled and sshd answers.

        Raises:
            LabError: It takes too long.
        """
        self.wait_for(self._listens, _BOOT_S, "boot")
        self.wait_for(self._settled, _BOOT_S, "systemd")
        self.wait_for(self._greets, _BOOT_S, "sshd")

    def _listens(self) -> bool:
        """Whether the node's systemd can be asked."""
        init = self.ask("status")["init"]
        return init is not None and Path(f"/proc/{init}/root/run/systemd/private").exists()

    def _settled(self) -> bool:
        """`degraded` is an answer: a failed unit does not make a node unusable."""
        argv = [*self._inside(), "systemctl", "is-system-running", "--wait"]
        done = subprocess.run(argv, capture_output=True, text=True, timeout=_BOOT_S, check=False)
        return done.stdout.strip() in ("running", "degraded")

    def execute(self, *argv: str) -> str:
        """Runs a program as root on the node and gives its stdout."""
        return run([*self._inside(), *argv], timeout=60)

    def _inside(self) -> list[str]:
        """What a command line begins with that runs on the node: `podman exec` does more and costs thirty times that.

        Raises:
            LabError: The node is off.
        """
        init = self.ask("status")["init"]
        if init is None:
            raise LabError(f"{self.record.name} is off", hint=f"gpufab lab reboot {self.record.name}")
        return ["nsenter", f"--target={init}", "--all", "env", "--ignore-environment", f"PATH={_PATH}"]

    def _greets(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self.record.ssh_port), timeout=2) as link:
                return link.recv(4) == b"SSH-"
        except OSError:
            return False

    def wait_for(self, done: Callable[[], bool], seconds: float, what: str) -> None:
        """Waits until something holds.

        Raises:
            LabError: It does not within some seconds.
        """
        deadline = time.monotonic() + seconds
        while not done():
            if time.monotonic() > deadline:
                raise LabError(f"{self.record.name}: no {what} within {seconds:.0f} s")
            time.sleep(_POLL_S)

    def running(self) -> bool:
        """Whether the container runs."""
        return succeeds(["podman", "container", "exists", self.container]) and (
            run(["podman", "inspect", self.container, "--format", "{{.State.Running}}"]).strip() == "true"
        )


def _is_mounted(path: Path) -> bool:
    """Whether something is mounted there; a FUSE mount whose process died only says that it is not connected."""
    try:
        return path.is_mount()
    except OSError as error:
        return error.errno == errno.ENOTCONN
