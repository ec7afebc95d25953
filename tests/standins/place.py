"""``python -m tests.standins.place FOLDER NODE…``: brings repositories to nodes of the lab that $GPUFAB_LAB names."""

import io
import os
import subprocess
import sys
import tarfile
from pathlib import Path

from gpufab_cli.lab.lab import Lab

ON_NODE = "/srv/repositories"
_SCRIPT = Path(__file__).with_name("place.sh")


def place(lab: Lab, names: list[str], folder: Path) -> None:
    """Copies the repositories to each node, and makes the distribution's the node's own."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        archive.add(folder, arcname=".")
    for name in names:
        _run(lab, name, packed.getvalue(), f"sudo mkdir -p {ON_NODE} && sudo tar -C {ON_NODE} --no-same-owner -x")
        _run(lab, name, _SCRIPT.read_bytes(), "sudo sh")


def _run(lab: Lab, name: str, data: bytes, line: str) -> None:
    subprocess.run(lab.ssh(name, line), input=data, check=True, timeout=120)


if __name__ == "__main__":
    place(Lab(Path(os.environ["GPUFAB_LAB"])), sys.argv[2:], Path(sys.argv[1]))
