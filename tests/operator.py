"""A fabric in a folder of its own, driven by the command line as an operator would."""

import json
import os
import subprocess
import sys
from pathlib import Path

BIN = Path(sys.executable).parent
ALLOW = "traffic,link-flap"


class Operator:
    """Somebody with a folder in which fabric.yml lies, and the programs of a venv."""

    bin = BIN

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.env: dict[str, str] = {}

    def edit(self, old: str, new: str, *, render: bool = True) -> None:
        """Declare something else."""
        path = self.folder / "fabric.yml"
        text = path.read_text()
        assert text.count(old) == 1
        path.write_text(text.replace(old, new))
        if render:
            self.cli("render")

    def run(self, *argv: str, timeout: float = 300) -> "subprocess.CompletedProcess[str]":
        """A program of the venv, in the fabric's folder."""
        path = f"{self.bin}:{os.environ['PATH']}"
        return subprocess.run(
            [str(self.bin / argv[0]), *argv[1:]],
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
