"""What an audit costs beside Ansible, on the same emulated nodes in one run: ``python benchmarks/audit.py [NODES]``.

As root, on an idle machine. Makes a lab of its own (8 nodes unless told otherwise), brings it to what is declared, and
measures by wall clock and by this machine's own CPU time (without that of the nodes, which are elsewhere in a real
fleet), in turns, the best of three:

- ``gpufab audit``;
- ``ansible -m setup`` on the same nodes (facts alone, nothing is compared);
- ``ansible-playbook --check`` of the whole site;
- ``gpufab apply`` with nothing to do.

Then, on one node, the restore that runs at boot with nothing to restore and with a driver reload's damage.
"""

import os
import platform
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

from gpufab_cli.lab.lab import Lab

ROOT = Path(__file__).resolve().parents[1]
BIN = Path(sys.executable).parent
ALLOW = "traffic,link-flap"
TIMES = 3
FORKS = "8"
RESTORE = "sudo -n /usr/local/lib/gpufab/python -I /usr/local/lib/gpufab/gpufab.pyz restore late"


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


class Cost(NamedTuple):
    """Seconds that pass, and seconds of CPU that the programs started here take."""

    wall: float
    cpu: float


def cost(work: Callable[[], None]) -> Cost:
    """What it takes."""

    def used() -> float:
        children = resource.getrusage(resource.RUSAGE_CHILDREN)
        return children.ru_utime + children.ru_stime

    wall, cpu = time.perf_counter(), used()
    work()
    return Cost(time.perf_counter() - wall, used() - cpu)


def fleet(site: Site) -> dict[str, Cost]:
    """What each way to look at all nodes takes."""
    inventory = ("-i", "inventory", "--forks", FORKS)
    ways = {
        "gpufab audit": ("gpufab", "audit", "--forks", FORKS),
        "ansible -m setup": ("ansible", *inventory, "all", "-m", "setup"),
        "ansible-playbook --check": ("ansible-playbook", *inventory, "gpufab.fabric.site", "--check"),
        "gpufab apply, nothing to do": ("gpufab", "apply", "--forks", FORKS),
    }
    # One after the other, again and again: whatever else the machine does meets all of them.
    runs = [{name: cost(partial(site.run, *argv)) for name, argv in ways.items()} for _ in range(TIMES)]
    return {name: Cost(*map(min, zip(*(run[name] for run in runs), strict=True))) for name in ways}


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
            audit = found["gpufab audit"]
            for name, took in found.items():
                beside = f"{took.wall / audit.wall:5.1f} x the audit"
                print(f"{name:<42} {took.wall:7.2f} s {beside}, CPU {took.cpu:6.2f} s {took.cpu / audit.cpu:5.1f} x")
            for name, seconds in restores(site).items():
                print(f"{name:<42} {seconds:7.2f} s")
        finally:
            site.lab.down()


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 8)
