"""A lab: emulated nodes that belong together, kept below one folder."""

import fcntl
import hashlib
import importlib.util
import itertools
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from gpufab_cli.lab import faults, files, image, machine, platforms, podman, railnet
from gpufab_cli.lab.errors import LabError
from gpufab_cli.lab.fault import TARGETED, Strike
from gpufab_cli.lab.files import RUN, LabFile, NodeRecord
from gpufab_cli.lab.hardware import NAME_CACHE_S
from gpufab_cli.lab.node import Node

_NEEDED = {
    "podman": "podman",
    "mmdebstrap": "mmdebstrap",
    "ip": "iproute2",
    "ssh-keygen": "openssh-client",
    "iptables": "iptables",
}
# Below the ports the kernel gives to outgoing connections, one of which could take a node's port while it reboots.
_PORTS = range(20000, 32000)
# Two CPUs boot a few nodes at a time faster than all at once.
_AT_ONCE = 4


def _silent(_: str) -> None:
    """Says nothing."""


class Lab:
    """The nodes below one folder. `say` gets progress, a line at a time."""

    def __init__(self, folder: Path, say: Callable[[str], None] = _silent) -> None:
        self.folder = folder.absolute()
        self.id = hashlib.sha256(os.fsencode(self.folder)).hexdigest()[:8]
        self._say = say
        self._prefix = f"gpufab-{self.id}-"
        self._netns = f"gpufab-{self.id}"
        self._run = RUN / self.id

    # ---- finding -----------------------------------------------------------------------------------------------------

    @property
    def ssh_config(self) -> Path:
        """The file to give to `ssh -F`."""
        return self.folder / "ssh_config"

    def _file(self) -> LabFile:
        return LabFile.load(self.folder / files.BOOK)

    def nodes(self) -> list[Node]:
        """All nodes the lab has been told of, by number."""
        return [self._node(record) for record in sorted(self._file().nodes.values(), key=lambda node: node.number)]

    def node(self, name: str) -> Node:
        """One node.

        Raises:
            LabError: The lab has no such node.
        """
        for node in self.nodes():
            if node.record.name == name:
                return node
        known = ", ".join(node.record.name for node in self.nodes())
        raise LabError(f"no node {name!r}", hint=f"known: {known}" if known else "gpufab lab up")

    def _node(self, record: NodeRecord) -> Node:
        book = self._file()
        return Node(
            record,
            container=f"{self._prefix}{record.name}",
            netns=self._netns,
            token=book.token,
            site=book.site,
            state=self.folder / "nodes" / record.name,
            run=self._run / record.name,
        )

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Keeps a second `lab` command on the same folder waiting."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with (self.folder / files.LOCK).open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    # ---- up and down -------------------------------------------------------------------------------------------------

    def up(self, names: Sequence[str], machine_type: str = "hgx-h100", platform: str = platforms.DEFAULT) -> None:
        """Brings nodes up; what runs is left alone, what is dead is made anew.

        Raises:
            LabError: Something the lab needs is missing, or a node does not come up.
        """
        require()
        kind = machine.load(machine_type)
        files.claim(self.folder)
        with self._locked():
            tag = image.ensure(self._say, platform)
            self._register(names, machine_type, platform)
            self._clean()
            files.keypair(self.folder / "id_ed25519", "gpufab lab")
            railnet.create(self._netns, len(kind.ports), self._file().site)
            wanted = [self.node(name) for name in names]
            known = podman.containers(self._prefix)
            self._each(wanted, lambda node: self._bring_up(node, tag, known.get(node.container)))
            self._write_ssh()

    def _bring_up(self, node: Node, tag: str, known: dict[str, Any] | None) -> None:
        node.ensure_container(tag, known)
        node.wait_up()
        self._say(f"{node.record.name} is up")

    def _each(self, nodes: Sequence[Node], act: Callable[[Node], None]) -> None:
        with ThreadPoolExecutor(_AT_ONCE) as pool:
            for done in [pool.submit(act, node) for node in nodes]:
                done.result()

    def _register(self, names: Sequence[str], machine_type: str, platform: str) -> None:
        book = self._file()
        for name in names:
            known = book.nodes.get(name)
            if known is None:
                taken = {node.ssh_port for node in book.nodes.values()}
                port = _free_port(self.id, taken)
                book.nodes[name] = NodeRecord(name, book.free_number(), machine_type, port, platform)
            elif (known.machine, known.platform) != (machine_type, platform):
                is_, wanted = f"{known.machine} on {known.platform}", f"{machine_type} on {platform}"
                raise LabError(f"{name} is {is_}, not {wanted}", hint="gpufab lab down first")
        book.save(self.folder / files.BOOK)

    def _clean(self) -> None:
        """Removes what lab.json does not know: leftovers of a killed run or of a folder that was deleted."""
        ours = {node.container for node in self.nodes()}
        for node in self._running_hardware():
            if node.container not in ours:
                node.end_hardware()
                shutil.rmtree(node.run)
        for name, entry in podman.containers(self._prefix).items():
            if name not in ours or (entry["Labels"] or {}).get(podman.LABEL) != self._file().token:
                podman.remove(name)

    def _running_hardware(self) -> list[Node]:
        """A node for each hardware process there may be, whether lab.json knows it or not."""
        names = [folder.name for folder in self._run.iterdir()] if self._run.is_dir() else []
        return [self._node(NodeRecord(name, number=0, machine="", ssh_port=0)) for name in names]

    def _write_ssh(self) -> None:
        there = [node for node in self.nodes() if node.host_key.exists()]
        keys = {node.record.name: node.host_key for node in there}
        files.ssh_files(self.folder, [node.record for node in there], keys)

    def down(self) -> None:
        """Removes everything this lab has made, and its folder where nothing else is in it."""
        require()
        with self._locked():
            for name in podman.containers(self._prefix):
                podman.remove(name)
            self._each(self._running_hardware(), Node.end_hardware)
            railnet.delete(self._netns)
            shutil.rmtree(self._run, ignore_errors=True)
            files.remove(self.folder)

    # ---- looking and rebooting ---------------------------------------------------------------------------------------

    def status(self) -> list[dict[str, Any]]:
        """One record a node: whether container and hardware live, its boot, its faults."""
        return [self._status(node) for node in self.nodes()]

    def _status(self, node: Node) -> dict[str, Any]:
        lives = node.hardware_lives()
        hardware = node.ask("status") if lives else {"boot_id": None, "boots": None, "faults": None}
        return {
            **asdict(node.record),
            "container": "running" if node.running() else "stopped",
            "hardware": "running" if lives else "dead",
            "boot_id": hardware["boot_id"],
            "boots": hardware["boots"],
            "faults": hardware["faults"],
        }

    def reboot(self, names: Sequence[str]) -> None:
        """Power-cycles nodes and waits until they are back."""
        self._each([self.node(name) for name in names], self._reboot)

    def _reboot(self, node: Node) -> None:
        podman.stop(node.container)
        podman.start(node.container)
        node.wait_up()
        self._say(f"{node.record.name} is back")

    # ---- faults and writes -------------------------------------------------------------------------------------------

    def break_(self, name: str, fault: str, argument: str = "", port: str = "0") -> None:
        """Injects a fault.

        Args:
            name: The node.
            fault: A name out of faults.KINDS.
            argument: A tool or a count, where the fault takes one.
            port: Rail number or netdev, where the fault is about a port.
        """
        faults.strike(faults.find(fault), self._strike(self.node(name), argument, port))
        time.sleep(NAME_CACHE_S)

    def repair(self, name: str, fault: str = "") -> None:
        """Ends one lasting fault wherever it is on the node, or all of them.

        Raises:
            LabError: The fault is not in force, or is none that lasts.
        """
        node = self.node(name)
        held = [entry for entry in node.ask("status")["faults"] if fault in ("", entry["name"])]
        if fault and not held:
            faults.refuse_mending(faults.find(fault), name)
        # Nothing can be mended on a node that is off.
        for entry in sorted(held, key=lambda entry: entry["name"] != "node-stopped"):
            kind = faults.find(entry["name"])
            argument = entry["target"] if kind.argument in TARGETED else str(entry["count"] or "")
            faults.mend(kind, self._strike(node, argument, (kind.on_port and entry["target"]) or "0"))
        time.sleep(NAME_CACHE_S)

    def _strike(self, node: Node, argument: str, port: str) -> Strike:
        kind = machine.load(node.record.machine)
        rail = kind.rail(port)
        return Strike(node, kind.ports[rail].netdev, rail, argument)

    def writes(self, name: str, clear: bool = False) -> list[dict[str, Any]]:
        """What was written to a node's hardware since it was first up, or since the last clear."""
        log = self.node(name).state / "writes.jsonl"
        entries = [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []
        if clear:
            log.unlink(missing_ok=True)
        return entries

    def ssh(self, name: str, *argv: str) -> list[str]:
        """The command line that reaches a node."""
        self.node(name)
        return ["ssh", "-F", str(self.ssh_config), name, *argv]

    def run(self, name: str, *argv: str) -> "subprocess.CompletedProcess[str]":
        """Runs a command on a node over ssh."""
        return subprocess.run(
            self.ssh(name, *argv), capture_output=True, text=True, stdin=subprocess.DEVNULL, check=False
        )


def require() -> None:
    """Checks what the lab needs.

    Raises:
        LabError: Says what is missing, in one line.
    """
    if os.geteuid() != 0:
        raise LabError("the lab needs root", hint="sudo")
    missing = [package for program, package in _NEEDED.items() if not shutil.which(program)]
    if not shutil.which("fusermount") and not shutil.which("fusermount3"):
        missing.append("fuse")
    if importlib.util.find_spec("mfusepy") is None:
        raise LabError("the lab needs the Python package mfusepy", hint="pip install 'gpufab[lab]'")
    if not Path("/dev/fuse").exists():
        raise LabError("this host has no /dev/fuse", hint="modprobe fuse")
    if missing:
        raise LabError(
            f"the lab needs programs that are not here: {', '.join(missing)}", hint=f"apt install {' '.join(missing)}"
        )


def _free_port(lab_id: str, taken: set[int]) -> int:
    """A port for a node's sshd, looked for from a place that differs from lab to lab."""
    start = int(lab_id, 16) % len(_PORTS)
    for port in itertools.chain(_PORTS[start:], _PORTS[:start]):
        if port not in taken and _is_free(port):
            return port
    raise LabError(f"no free port on 127.0.0.1 in {_PORTS.start}-{_PORTS.stop - 1}")


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True
