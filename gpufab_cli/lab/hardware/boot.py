"""Powering a node on: what the hardware does before the operating system starts.

The node's first process is the shim under the name gpufab-boot. It asks here and is told to become init only when the
rails are plugged in, the boot id is new and the hardware has forgotten what it forgets.
"""

import logging
import os
import select
import threading
from dataclasses import dataclass
from pathlib import Path

from gpufab_cli.lab import railnet
from gpufab_cli.lab.errors import LabError
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.netdev import Node
from gpufab_cli.lab.hardware.tools.answer import Answer, Request
from gpufab_cli.lab.shell import run

INIT = "/sbin/init"
# Where the node sees the folder with the tools' socket.
IN_NODE = "/opt/hardware"
_BOOT_ID = "/proc/sys/kernel/random/boot_id"
_log = logging.getLogger(__name__)


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
            hw.node = Node(pid)
            hw.restructure()
            self._verbs(pid)
            self._boot_id(pid)
        except (LabError, OSError) as error:
            _log.exception("boot failed")
            return Answer(stderr=f"gpufab-boot: {error}\n", rc=1)
        threading.Thread(target=self._watch, args=(os.pidfd_open(pid),), daemon=True).start()
        _log.info("boot %d, pid %d", hw.state.boots, pid)
        return Answer(program=INIT)

    def _off(self) -> None:
        """Lets go of the node's interfaces, which keep its network namespace alive as long as they are held."""
        node, self.hardware.node = self.hardware.node, None
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

    def _verbs(self, pid: int) -> None:
        """Plain files stand for the verbs devices: no driver is behind them, but who holds one can be seen."""
        devices = Path(f"/proc/{pid}/root/dev/infiniband")
        devices.mkdir(exist_ok=True)
        for index, _ in enumerate(self.hardware.machine.ports):
            node = devices / f"uverbs{index}"
            node.touch()
            node.chmod(0o666)

    def _boot_id(self, pid: int) -> None:
        (self.folder / "boot_id").write_text(self.hardware.state.boot_id + "\n")
        run(["nsenter", f"--mount=/proc/{pid}/ns/mnt", "mount", "--bind", f"{IN_NODE}/boot_id", _BOOT_ID])
