"""What an audit costs beside Ansible, on the same emulated nodes in one run: ``python benchmarks/audit.py [NODES]``.

As root, on an idle machine. Makes a lab of its own (8 nodes unless told otherwise), brings it to what is declared, and
measures by wall clock, in turns, the best of three:

- ``gpufab audit``;
- ``ansible -m setup`` on the same nodes (facts alone, nothing is compared);
- ``ansible-playbook --check`` of the whole site;
- ``gpufab apply`` with nothing to do.

Then, on one node, the restore that runs at boot with nothing to restore and with a driver reload's damage.
"""

import os
import platform
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from gpufab_cli.lab.lab import Lab

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
ALLOW = "traffic,link-flap"
TIMES = 3
FORKS = "8"
RESTORE = "sudo -n /usr/bin/python3 -I /usr/local/lib/gpufab/gpufab.pyz restore late"


class Site:
    """A folder with a fabric of so many lab nodes."""

    def __init__(self, folder: Path, nodes: int) -> None:
        self.folder, self.lab = folder, Lab(folder / ".lab")
        self.names = [f"gpu{number:02d}" for number in range(1, nodes + 1)]
        text = (ROOT / "inventory/lab/fabric.yml").read_text(encoding="utf-8")
        text = text.replace("gpu[01-02]", f"gpu[01-{nodes:02d}]").replace("../../.lab/", ".lab/")
        rollout = "rollout: {canary: 0, batch: 100%, soak_s: 0, verify: false}"
        text = re.sub(r"^rollout: \{.*?\}", rollout, text, flags=re.MULTILINE)
        (folder / "fabric.yml").write_text(text, encoding="utf-8")

    def run(self, *argv: str) -> None:
        """A program of this installation, in the fabric's folder; it must end well."""
        env = {
            **os.environ,
            "PATH": f"{BIN}:{os.environ['PATH']}",
            "PYTHONPATH": str(ROOT),  # of this tree, wherever it was installed from
            "ANSIBLE_PIPELINING": "True",  # as gpufab runs it
        }
        done = subprocess.run(
            [str(BIN / argv[0]), *argv[1:]], cwd=self.folder, env=env, capture_output=True, text=True, check=False
        )
        if done.returncode:
            sys.exit(f"{' '.join(argv)}: exit {done.returncode}\n{done.stdout}{done.stderr}")


def seconds(work: Callable[[], None]) -> float:
    """How long it takes."""
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def fleet(site: Site) -> dict[str, float]:
    """Seconds of each way to look at all nodes."""
    inventory = ("-i", "inventory", "--forks", FORKS)
    ways = {
        "gpufab audit": ("gpufab", "audit", "--forks", FORKS),
        "ansible -m setup": ("ansible", *inventory, "all", "-m", "setup"),
        "ansible-playbook --check": ("ansible-playbook", *inventory, "gpufab.fabric.site", "--check"),
        "gpufab apply, nothing to do": ("gpufab", "apply", "--forks", FORKS),
    }
    # One after the other, again and again: whatever else the machine does meets all of them.
    runs = [{name: seconds(partial(site.run, *argv)) for name, argv in ways.items()} for _ in range(TIMES)]
    return {name: min(run[name] for run in runs) for name in ways}


def restores(site: Site) -> dict[str, float]:
    """Seconds of a restore on the first node, without the SSH connection around it."""

    def timed() -> float:
        line = f"begin=$(date +%s%N); {RESTORE} >/dev/null 2>&1; echo $(( $(date +%s%N) - begin ))"
        done = subprocess.run(site.lab.ssh("gpu01", line), capture_output=True, text=True, check=True)
        return int(done.stdout) / 1e9

    nothing = min(timed() for _ in range(TIMES))
    site.lab.break_("gpu01", "driver-reload")
    return {"restore, nothing to do": nothing, "restore, 8 ports after a driver reload": timed()}


def main(nodes: int) -> None:
    """Print seconds, and each as a multiple of the audit."""
    with tempfile.TemporaryDirectory(prefix="gpufab-bench-") as folder:
        site = Site(Path(folder), nodes)
        try:
            site.lab.up(site.names)
            for argv in (("lock",), ("render",), ("apply", "--timeout", "300", "--allow", ALLOW)):
                site.run("gpufab", *argv)
            load = f"{os.getloadavg()[0]:.1f}"
            print(f"Python {platform.python_version()}, {os.cpu_count()} CPUs, load {load}, {nodes} nodes on them, too")
            found = fleet(site)
            for name, took in found.items():
                print(f"{name:<42} {took:7.2f} s  {took / found['gpufab audit']:6.1f} x the audit")
            for name, took in restores(site).items():
                print(f"{name:<42} {took:7.2f} s")
        finally:
            site.lab.down()


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 8)
