"""Powering a node on: what the hardware does before the operating system starts.

The node's first process is the shim under the name gpufab-boot. It asks here and is told to become init only when the
rails are plugged in, the boot id is new and the hardware has forgotten what it forgets.
"""

import logging
import os
import re
import select
import threading
from dataclasses import dataclass
from pathlib import Path

from gpufab_cli.lab import railnet, toolbox
from gpufab_cli.lab.errors import LabError
from gpufab_cli.lab.hardware import gpu_software
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.netdev import Node
from gpufab_cli.lab.hardware.sysfs import numa
from gpufab_cli.lab.hardware.tools.answer import Answer, Request
from gpufab_cli.lab.shell import run

INIT = "/sbin/init"
# Where the node sees the folder with the tools' socket.
IN_NODE = "/opt/hardware"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_CMDLINE = "/proc/cmdline"
_NET_SETTINGS = "/proc/sys/net"
_log = logging.getLogger(__name__)


def command_line(menu: str) -> str:
    """The kernel's, as GRUB makes it of the menu's first entry: up to a semicolon with no backslash before it."""
    line = re.search(r"^\s*linux\s+(\S+) *((?:\\;|[^;\n])*)", menu, re.MULTILINE)
    return f"BOOT_IMAGE={line[1]} {line[2]}".replace("\\;", ";").rstrip() if line else ""


@dataclass(frozen=True)
class VfPlug:
    """What VFs bring to a running node; any process of it is `pid`."""

    plug: railnet.Plug
    pid: int

    def attach(self, rail: int, index: int, name: str, mac: str) -> None:
        """A VF's netdev comes, with a cable to its rail."""
        self.plug.attach(self.pid, rail, index, name, mac)

    def detach(self, rail: int, index: int) -> None:
        """It goes, wherever it has been moved to."""
        self.plug.detach(rail, index)

    def device(self, path: str, present: bool) -> None:
        """A plain file stands for a device: no driver is behind it, but who holds it can be seen."""
        file = Path(f"/proc/{self.pid}/root/dev") / path
        if present:
            file.parent.mkdir(exist_ok=True)
            file.touch()
            file.chmod(0o666)
        else:
            file.unlink(missing_ok=True)


@dataclass(frozen=True)
class Power:
    """The power button of one node; `folder` is what the node sees as /opt/hardware."""

    hardware: Hardware
    plug: railnet.Plug
    folder: Path

    def on(self, request: Request) -> Answer:
        """Answers gpufab-boot."""
        if not request.is_root:
            return Answer(stderr="gpufab-boot: not permitted\n", rc=1)
        hw, pid = self.hardware, request.pid
        self._off()
        hw.reboot()
        try:
            self.plug.connect(pid)
            hw.node, hw.plug = Node(pid), VfPlug(self.plug, pid)
            hw.restructure()
            self._verbs()
            self._tools(pid)
            self._boot_id(pid)
            self._command_line(pid)
            self._proc(pid)
            self._driver(pid)
        except (LabError, OSError) as error:
            _log.exception("boot failed")
            return Answer(stderr=f"gpufab-boot: {error}\n", rc=1)
        threading.Thread(target=self._watch, args=(os.pidfd_open(pid),), daemon=True).start()
        _log.info("boot %d, pid %d", hw.state.boots, pid)
        return Answer(program=INIT)

    def _off(self) -> None:
        """Lets go of the node's interfaces, which keep its network namespace alive as long as they are held."""
        node, self.hardware.node, self.hardware.plug = self.hardware.node, None, None
        self.hardware.restructure()
        if node is not None:
            node.close()

    def _watch(self, pidfd: int) -> None:
        """Sees the node go down."""
        held = self.hardware.node
        poller = select.poll()
        poller.register(pidfd, select.POLLIN)
        poller.poll()
        os.close(pidfd)
        if self.hardware.node is held:
            self._off()

    def _verbs(self) -> None:
        for index, _ in enumerate(self.hardware.machine.ports):
            if self.hardware.plug is not None:
                self.hardware.plug.device(f"infiniband/uverbs{index}", True)

    def _tools(self, pid: int) -> None:
        """Installs the tools that the machine's stack has, and no others; one hidden by a fault stays so."""
        for tool, path in toolbox.TOOLS.items():
            program = Path(f"/proc/{pid}/root{path}")
            wanted = self.hardware.machine.has_tool(tool) and not Path(f"{program}.missing").is_symlink()
            if wanted and not program.is_symlink():
                program.symlink_to(toolbox.SHIM)
            elif not wanted:
                program.unlink(missing_ok=True)

    def _boot_id(self, pid: int) -> None:
        (self.folder / "boot_id").write_text(self.hardware.state.boot_id + "\n")
        _bind(pid, "boot_id", _BOOT_ID)

    def _command_line(self, pid: int) -> None:
        line = command_line(Path(f"/proc/{pid}/root/boot/grub/grub.cfg").read_text())
        (self.folder / "cmdline").write_text(f"{line}\n")
        _bind(pid, "cmdline", _CMDLINE)
        self._iommu(line.split())

    def _driver(self, pid: int) -> None:
        """What the GPUs' driver shows below /proc, and the link by which programs find its library."""
        for name, text in gpu_software.proc_files(self.hardware).items():
            file = self.folder / "proc" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        for name in ("driver", "kallsyms"):
            _bind(pid, f"proc/{name}", f"/proc/{name}")
        library = Path(f"/proc/{pid}/root{gpu_software.LIBRARY}")
        library.parent.mkdir(parents=True, exist_ok=True)
        library.unlink(missing_ok=True)
        library.symlink_to(f"libnvidia-ml.so.{gpu_software.installed(self.hardware)}")

    def _iommu(self, arguments: list[str]) -> None:
        """The IOMMU is off unless asked for."""
        asked = {"intel_iommu=on", "amd_iommu=on", "iommu=pt"} & set(arguments)
        self.hardware.state.numa.domain = "" if not asked else "identity" if "iommu=pt" in asked else "DMA-FQ"
        self.hardware.restructure()
        self.hardware.save()

    def _proc(self, pid: int) -> None:
        """Of /proc the machine's own interrupts and settings, and the network's settings, which are the node's alone.

        The host's kernel decides whether there is a setting to put the machine's over.
        """
        for name in ("irq", "interrupts", *numa.SETTINGS):
            if Path(f"/proc/{pid}/root/proc/{name}").exists():
                _mount(pid, "--bind", f"/sys{numa.PROC}/{name}", f"/proc/{name}")
        _mount(pid, "--bind", _NET_SETTINGS, _NET_SETTINGS)
        _mount(pid, "-o", "remount,bind,rw", _NET_SETTINGS)


def _bind(pid: int, name: str, path: str) -> None:
    """Shows a file or folder of ours in place of another of the node's."""
    _mount(pid, "--bind", f"{IN_NODE}/{name}", path)


def _mount(pid: int, *arguments: str) -> None:
    """Mounts in the node."""
    run(["nsenter", f"--mount=/proc/{pid}/ns/mnt", "mount", *arguments])
