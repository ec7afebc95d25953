"""How validate and render grow with the fabric: ``python benchmarks/spec.py [HOSTS...]``, by hand.

Each size runs in a process of its own: a made-up fabric of eight RoCE rails a host and its lock, loaded from disk
(validate), then compiled and turned into the text of the whole inventory (render), then written. CPU seconds, the peak
of resident memory, and both per host as ratios to the smallest size: 1.0 is linear, less is better.
"""

import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gpufab_cli.fabric.resolve import load_resolved
from gpufab_cli.intent.compile import compile_wants
from gpufab_cli.outputs.ansible.inventory import ANSIBLE
from gpufab_cli.outputs.files import compare, write
from gpufab_cli.spec.load import load
from gpufab_cli.spec.lock import Lock, LockedGpu, LockedHost, LockedPort, dump

SIZES = (100, 1000, 10_000)
RAILS = 8
IN_A_RACK = 100
PHASES = ("validate", "render", "write")

FABRIC = """\
name: big
networks:
  compute:
    transport: roce
    speed_gbps: 400
    mtu: 9000
    rails: 8
    qos: dcqcn
    addressing: {{ipv4: "10.{{rail}}.{{rack}}.{{host}}/16"}}
qos:
  dcqcn:
    lossless: [{{priority: 3, dscp: [26]}}]
    cnp: {{priority: 6, dscp: 48}}
    ets: {{3: 50, 0: 50}}
profiles:
  box: {{ports: [{{network: compute, rail: 0-7}}]}}
hosts:
  - {{name: "r[001-{racks:03d}]n[001-{hosts:03d}]", profile: box}}
"""


def make(folder: Path, hosts: int) -> Path:
    """A fabric of so many hosts, and its lock."""
    fabric = folder / "fabric.yml"
    racks = max(1, hosts // IN_A_RACK)
    fabric.write_text(FABRIC.format(racks=racks, hosts=hosts // racks))
    names = [host.name for host in load(fabric).hosts]
    (folder / "fabric.lock.yml").write_text(dump(Lock(hosts={name: _host(i) for i, name in enumerate(names)})))
    return fabric


def _host(number: int) -> LockedHost:
    ports = {
        f"compute/{rail}": LockedPort(
            pci=f"0000:{16 * (rail + 1):02x}:00.0",
            mac=f"02:00:{number >> 8 & 255:02x}:{number & 255:02x}:00:{rail:02x}",
            serial=f"MT2338X{number:05d}{rail}",
            psid="MT_0000000838",
        )
        for rail in range(RAILS)
    }
    return LockedHost(ports=ports, gpus=tuple(LockedGpu(pci=f"0000:{16 * g + 17:02x}:00.0") for g in range(8)))


def measure(fabric: Path) -> dict[str, float]:
    """CPU seconds of each phase, and the peak of resident memory in MiB before anything is written."""
    marks = [time.process_time()]
    resolved = load_resolved(fabric)
    marks.append(time.process_time())
    files = ANSIBLE.render(resolved, compile_wants(resolved))
    marks.append(time.process_time())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # Linux counts in KiB
    root = fabric.parent / ANSIBLE.folder
    write(root, compare(root, files, ANSIBLE.header))
    marks.append(time.process_time())
    return {**{name: marks[i + 1] - marks[i] for i, name in enumerate(PHASES)}, "memory": memory}


def child(hosts: int) -> dict[str, float]:
    """The measures of one size, in a new process: peaks of memory do not go down again."""
    with tempfile.TemporaryDirectory() as folder:
        fabric = make(Path(folder), hosts)
        done = subprocess.run([sys.executable, __file__, "--one", str(fabric)], check=True, capture_output=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def main(arguments: list[str]) -> None:
    """Print one line a size."""
    if arguments[:1] == ["--one"]:
        print(json.dumps(measure(Path(arguments[1]))))
        return
    sizes = [int(argument) for argument in arguments] or list(SIZES)
    print(f"Python {platform.python_version()}, {os.cpu_count()} CPUs, {platform.machine()}")
    print(f"{'hosts':>7} {'validate s':>11} {'render s':>9} {'write s':>8} {'peak MiB':>9}   per host, as a ratio")
    first: dict[str, float] = {}
    for hosts in sizes:
        found = child(hosts)
        per_host = {name: found[name] / hosts for name in found}
        first = first or per_host
        ratios = ", ".join(f"{name} {per_host[name] / first[name]:.2f}" for name in found)
        print(f"{hosts:>7} {found['validate']:>11.2f} {found['render']:>9.2f} {found['write']:>8.2f}", end=" ")
        print(f"{found['memory']:>9.0f}   {ratios}")


if __name__ == "__main__":
    main(sys.argv[1:])
