"""A machine's disk as it would be had the power gone at this moment, read without a boot."""

import shutil
import subprocess
from pathlib import Path

from tests.vm.machine import Machine

_FOLDERS = ("/etc/gpufab", "/var/lib/gpufab")


class Crash:
    """One copy of a disk."""

    def __init__(self, machine: Machine, folder: Path) -> None:
        self.tools, self.folder = machine.image.tools, folder
        folder.mkdir()
        self.disk = folder / "disk.qcow2"
        machine.monitor.command("stop")
        try:
            shutil.copy(machine.disk, self.disk)
        finally:
            machine.monitor.command("cont")

    def files(self) -> dict[str, str]:
        """gpufab's files by path, after the file system has replayed its journal, as a mount does."""
        raw = self.folder / "disk.raw"
        self.tools.run("qemu-img", "convert", "-U", "-O", "raw", str(self.disk), str(raw), timeout=600)
        done = subprocess.run(
            self.tools.argv("e2fsck", "-f", "-p", str(raw)), capture_output=True, text=True, check=False
        )
        assert done.returncode in {0, 1}, done.stdout + done.stderr
        found = {}
        for path in _FOLDERS:
            copy = self.folder / path.replace("/", "_")
            copy.mkdir()
            self.tools.run("debugfs", "-R", f"rdump {path} {copy}", str(raw))
            for file in copy.rglob("*.json*"):
                found[str(file.relative_to(copy.parent))] = file.read_text()
        raw.unlink()
        self.disk.unlink()
        return found
