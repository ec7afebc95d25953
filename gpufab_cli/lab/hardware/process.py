"""The hardware process of one node: `python -m gpufab_cli.lab.hardware.process NODE.json`."""

import json
import logging
import os
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gpufab_cli.lab import machine as machines
from gpufab_cli.lab import railnet
from gpufab_cli.lab.hardware import boot, control, server
from gpufab_cli.lab.hardware.model import Cables, Hardware
from gpufab_cli.lab.hardware.netdev import Links
from gpufab_cli.lab.hardware.sysfs import mount
from gpufab_cli.lab.hardware.tools import dispatch
from gpufab_cli.lab.hardware.tools.answer import Answer, Request


@dataclass(frozen=True)
class Settings:
    """What the lab tells a hardware process; written to the node's state folder as node.json."""

    node: str
    number: int
    machine: str
    netns: str
    token: str
    state: Path
    run: Path
    mtu: int
    ipv4: str

    @property
    def sys(self) -> Path:
        """Where /sys is mounted on the host."""
        return self.run / "sys"

    @property
    def folder(self) -> Path:
        """What the node sees as /opt/hardware."""
        return self.run / "hw"

    @property
    def control(self) -> Path:
        """The lab's socket."""
        return self.run / "control"

    def save(self) -> Path:
        """Writes node.json and gives its path."""
        path = self.state / "node.json"
        path.write_text(json.dumps({key: str(v) if isinstance(v, Path) else v for key, v in vars(self).items()}))
        return path

    @classmethod
    def load(cls, path: Path) -> "Settings":
        """Reads what `save` wrote."""
        raw: dict[str, Any] = json.loads(path.read_text())
        return cls(**{**raw, "state": Path(raw["state"]), "run": Path(raw["run"])})


def main(settings: Settings) -> None:
    """Serves one node until its /sys is unmounted."""
    machine = machines.load(settings.machine)
    ends = tuple(railnet.end(settings.number, rail) for rail, _ in enumerate(machine.ports))
    cables = Cables(Links(railnet.path(settings.netns)), ends)
    identity = machines.Identity(settings.node)
    hw = Hardware(machine, identity, settings.state / "state.json", cables)
    site = railnet.Site(settings.mtu, settings.ipv4)
    plug = railnet.Plug(settings.netns, settings.number, machine, identity, site)
    power = boot.Power(hw, plug, settings.folder)

    def answer(request: Request) -> Answer:
        return power.on(request) if request.tool == "gpufab-boot" else dispatch.answer(hw, request)

    server.serve_tools(settings.folder / "tools.sock", answer)
    server.serve_control(settings.control, lambda request: control.answer(hw, settings.token, request))
    mount.serve(hw, settings.sys)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    os.chdir("/")
    main(Settings.load(Path(sys.argv[1])))
