"""A fabric of lab nodes in a folder of its own, driven by the command line as an operator would."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from gpufab_cli.lab.lab import Lab

REPOSITORY = Path(__file__).resolve().parents[2]
BIN = Path(sys.executable).parent
ALLOW = "traffic,link-flap"
MACHINE, RAILS = "l40s", 2
"""Small, as each port costs time; molecule and the demo have eight of them a node."""
ALL_AT_ONCE = "{canary: 0, batch: 100%, soak_s: 0, verify: false}"
"""Most tests are about something else than batches."""


class Fabric:
    """N lab nodes, gpu01 …, with fabric.yml, lock and inventory."""

    def __init__(self, folder: Path, count: int, rollout: str = ALL_AT_ONCE) -> None:
        self.folder = folder
        self.names = [f"gpu{number:02d}" for number in range(1, count + 1)]
        self.lab = Lab(folder / ".lab")
        self.env: dict[str, str] = {}
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

    def edit(self, old: str, new: str) -> None:
        """Declare something else."""
        path = self.folder / "fabric.yml"
        text = path.read_text()
        assert text.count(old) == 1
        path.write_text(text.replace(old, new))
        self.cli("render")

    def run(self, *argv: str, timeout: float = 300) -> "subprocess.CompletedProcess[str]":
        """A program of the venv, in the fabric's folder."""
        path = f"{BIN}:{os.environ['PATH']}"
        return subprocess.run(
            [str(BIN / argv[0]), *argv[1:]],
            cwd=self.folder,
            env={**os.environ, "PATH": path, "NO_COLOR": "1", "COLUMNS": "200", **self.env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )

    def cli(self, *argv: str, rc: int | None = 0) -> "subprocess.CompletedProcess[str]":
        """``gpufab …``, which must end as told."""
        done = self.run("gpufab", *argv)
        assert rc is None or done.returncode == rc, (
            f"gpufab {' '.join(argv)}: {done.returncode}\n{done.stdout}{done.stderr}"
        )
        return done

    def json(self, *argv: str, rc: int | None = None) -> dict:
        """What ``gpufab … --format json`` prints."""
        return json.loads(self.cli(*argv, "--format", "json", rc=rc).stdout)

    def site(self, *argv: str, allow: str = ALLOW) -> "subprocess.CompletedProcess[str]":
        """Plain ansible-playbook of the site, without the command line's own ways."""
        consent = json.dumps({"gpufab_allow": [name for name in allow.split(",") if name]})
        return self.run("ansible-playbook", "-i", "inventory", "gpufab.fabric.site", "-e", consent, *argv)

    def roce(self, *argv: str, allow: str = ALLOW) -> "subprocess.CompletedProcess[str]":
        """The part of the site that is about RoCE ports."""
        return self.site("--tags", "roce", *argv, allow=allow)

    def sh(self, node: str, line: str, rc: int = 0) -> str:
        """A shell line as root on a node."""
        done = subprocess.run(
            self.lab.ssh(node, "sudo", "-n", "bash", "-s"), input=line, capture_output=True, text=True, check=False
        )
        assert done.returncode == rc, f"{line}: {done.returncode}\n{done.stdout}{done.stderr}"
        return done.stdout
