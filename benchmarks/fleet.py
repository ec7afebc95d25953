"""What an audit of many hosts costs this machine: ``python benchmarks/fleet.py [HOSTS...]``, by hand.

Needs the extra ``bench``. Small SSH servers in one process of its own, on addresses of the loopback, answer with what
the collector prints on a host with eight RoCE rails that is as declared. The audit is the real one: the ways from
``ssh -G``, paramiko, host keys, snapshots, plans, report. CPU seconds of the audit's process and of its children, wall
seconds beside the servers' own work on the same machine, and the peak of resident memory. Then the same without SSH:
saved snapshots by ``--from``, for ten thousand hosts.
"""

import asyncio
import gc
import json
import os
import platform
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))  # hosts that are as declared come from the tests

from spec import RAILS, make  # noqa: E402

SIZES = (10, 100, 1000, 5000)
SAVED = 10_000
FORKS = 64
ALIAS = "bench"


def address(number: int) -> str:
    """The loopback address of one host."""
    return f"127.1.{number >> 8}.{number & 255}"


def prepare(folder: Path, hosts: int, *, drifted: bool = False) -> Path:
    """A fabric of so many hosts that are reached on the loopback, and what each answers, by address.

    ``drifted``: no port of any host has a lossless class or a map.
    """
    from gpufab_cli.compile.fabric import load_whole
    from gpufab_cli.module_utils import snapshot
    from gpufab_cli.module_utils.program import MARKER
    from tests.snapshots import in_sync

    fabric = make(folder, hosts)
    text = fabric.read_text(encoding="utf-8")
    start = text.index("    addressing:")
    text = text[:start] + text[text.index("\n", start) + 1 :] + "connection: {ssh_config: ssh_config}\n"
    fabric.write_text(text, encoding="utf-8")
    wants = load_whole(fabric).wants
    ports = {rail: {"pfc": (), "dscp_priority": (), "trust": "pcp"} for rail in range(RAILS)} if drifted else {}
    answers = {host: f"{MARKER}\n{snapshot.dumps(in_sync(host, wants=wants, ports=ports))}\n" for host in wants}
    (folder / "answers.json").write_text(json.dumps({address(n): answers[h] for n, h in enumerate(answers)}))
    (folder / "hosts.json").write_text(json.dumps(list(answers)))
    return fabric


def keys(folder: Path) -> None:
    """A host key and a user key."""
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / name)], check=True)


def configure(folder: Path, port: int) -> None:
    """The site's ssh_config, and a known_hosts with a line a host, as sites have."""
    hosts = json.loads((folder / "hosts.json").read_text())
    public = " ".join((folder / "host.pub").read_text().split()[:2])
    known = "".join(f"[{address(n)}]:{port} {public}\n" for n in range(len(hosts)))
    (folder / "known_hosts").write_text(known)
    lines = [f"Host {host}\n  HostName {address(n)}\n" for n, host in enumerate(hosts)]
    common = (
        f"Host *\n  User ops\n  Port {port}\n  IdentityFile {folder}/user\n  IdentitiesOnly yes\n"
        f"  UserKnownHostsFile {folder}/known_hosts\n  GlobalKnownHostsFile /dev/null\n"
    )
    (folder / "ssh_config").write_text("".join(lines) + common)


async def serve(folder: Path) -> None:
    """Answer every host's collector; print the port, end with stdin."""
    import asyncssh

    answers = json.loads((folder / "answers.json").read_text())

    async def answer(process: Any) -> None:
        await process.stdin.read()
        process.stdout.write(answers[process.get_extra_info("sockname")[0]])
        process.exit(0)

    server = await asyncssh.listen(
        "0.0.0.0",  # noqa: S104 (all of 127.0.0.0/8 is meant)
        0,
        server_host_keys=[str(folder / "host")],
        authorized_client_keys=str(folder / "user.pub"),
        process_factory=answer,
        encoding="utf-8",
        errors="replace",
        backlog=1024,
    )
    print(server.get_port(), flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


def measure(fabric: Path, saved: Path | None) -> dict[str, float]:
    """An audit in this process, its report included."""
    from gpufab_cli import cli

    gc.set_threshold(*cli.COLLECT_AFTER)  # as main() does
    begin = time.perf_counter()
    words = ["audit", "-f", str(fabric), "--format", "json", "--forks", str(FORKS)]
    code = cli.run([*words, *(("--from", str(saved)) if saved else ("--timeout", "120"))])
    wall = time.perf_counter() - begin
    own, children = resource.getrusage(resource.RUSAGE_SELF), resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = own.ru_utime + own.ru_stime
    return {
        "code": code,
        "wall": wall,
        "cpu": cpu,
        "children": children.ru_utime + children.ru_stime,
        "memory": peak(),
    }


def peak() -> float:
    """The peak of this process's resident memory in MiB. getrusage(2) would give that of whoever started it, too."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:")) / 1024


def one(fabric: Path, saved: Path | None = None) -> dict[str, float]:
    """The measures of one audit, in a process of its own."""
    argv = [sys.executable, __file__, "--one", str(fabric), *((str(saved),) if saved else ())]
    done = subprocess.run(argv, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stderr.splitlines()[-1])
    if found["code"] not in (0, 1):
        sys.exit(f"the audit ended with {found['code']}: {done.stdout[:400]} {done.stderr[-400:]}")
    return found


def over_ssh(hosts: int) -> dict[str, float]:
    """An audit of so many little servers."""
    with tempfile.TemporaryDirectory(prefix="gpufab-bench-") as name:
        folder = Path(name)
        keys(folder)
        fabric = prepare(folder, hosts)
        server = subprocess.Popen(
            [sys.executable, __file__, "--serve", name], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        try:
            configure(folder, int(server.stdout.readline()) if server.stdout else 0)
            return one(fabric)
        finally:
            server.communicate("")


def from_disk(hosts: int, *, drifted: bool = False) -> dict[str, float]:
    """An audit of saved snapshots."""
    with tempfile.TemporaryDirectory(prefix="gpufab-bench-") as name:
        folder = Path(name)
        fabric = prepare(folder, hosts, drifted=drifted)
        names, answers = (
            json.loads((folder / "hosts.json").read_text()),
            json.loads((folder / "answers.json").read_text()),
        )
        saved = folder / "saved"
        saved.mkdir()
        for host, text in zip(names, answers.values(), strict=True):
            data = {"format": 1, "host": host, "no_root": "", "snapshot": json.loads(text.partition("\n")[2])}
            (saved / f"{host}.json").write_text(json.dumps(data))
        return one(fabric, saved)


def main(arguments: list[str]) -> None:
    """Print one line a size."""
    if arguments[:1] == ["--serve"]:
        asyncio.run(serve(Path(arguments[1])))
        return
    if arguments[:1] == ["--one"]:
        found = measure(Path(arguments[1]), Path(arguments[2]) if arguments[2:] else None)
        print(json.dumps(found), file=sys.stderr)
        return
    print(f"Python {platform.python_version()}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, {FORKS} forks")
    print(f"{'hosts':>7} {'wall s':>8} {'CPU ms/host':>12} {'of it children':>14} {'peak MiB':>9}")
    for hosts in [int(argument) for argument in arguments] or SIZES:
        show(hosts, over_ssh(hosts))
    for drifted in (False, True):
        print("from saved snapshots, " + ("every port of every host drifted:" if drifted else "all as declared:"))
        for hosts in (SAVED // 10, SAVED):
            show(hosts, from_disk(hosts, drifted=drifted))


def show(hosts: int, found: dict[str, float]) -> None:
    """One line."""
    cpu, children = (1000 * found[name] / hosts for name in ("cpu", "children"))
    print(
        f"{hosts:>7} {found['wall']:>8.1f} {cpu + children:>12.1f} {children:>14.1f} {found['memory']:>9.0f}",
        flush=True,
    )


if __name__ == "__main__":
    main(sys.argv[1:])
