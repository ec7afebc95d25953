"""A fabric of lab nodes in a folder of its own, driven by the command line as an operator would."""

import re
import subprocess
from pathlib import Path

from gpufab_cli.lab.lab import Lab
from tests.operator import Operator

REPOSITORY = Path(__file__).resolve().parents[2]
MACHINE, RAILS = "l40s", 2
"""Small, as each port costs time; molecule and the demo have eight of them a node."""
ALL_AT_ONCE = "{canary: 0, batch: 100%, soak_s: 0, verify: false}"
"""Most tests are about something else than batches."""


class Fabric(Operator):
    """N lab nodes, gpu01 …, with fabric.yml, lock and inventory."""

    def __init__(self, folder: Path, count: int, rollout: str = ALL_AT_ONCE) -> None:
        super().__init__(folder)
        self.names = [f"gpu{number:02d}" for number in range(1, count + 1)]
        self.lab = Lab(folder / ".lab")
        text = (REPOSITORY / "inventory/lab/fabric.yml").read_text()
        text = text.replace("gpu[01-02]", f"gpu[01-{count:02d}]").replace("../../.lab/", ".lab/")
        text = text.replace("speed_gbps: 400", "speed_gbps: 100").replace("rails: 8", f"rails: {RAILS}")
        text = text.replace("rail: 0-7", f"rail: 0-{RAILS - 1}")
        text = re.sub(r"^rollout: \{.*?\}", f"rollout: {rollout}", text, flags=re.MULTILINE)
        (folder / "fabric.yml").write_text(text)

    def up(self) -> "Fabric":
        self.lab.up(self.names, MACHINE)
        self.cli("lock")
        self.cli("render")
        return self

    def sh(self, node: str, line: str, rc: int = 0) -> str:
        """A shell line as root on a node."""
        done = subprocess.run(
            self.lab.ssh(node, "sudo", "-n", "bash", "-s"), input=line, capture_output=True, text=True, check=False
        )
        assert done.returncode == rc, f"{line}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout
