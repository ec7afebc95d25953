"""A whole emulated machine in memory, behind the doors of the node core: the lab's hardware without its container.

Files below /sys and the vendor tools are the lab's; everything else is a dictionary. A reboot is the lab's too.
"""

import errno
import json
import os
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from gpufab_cli.lab import machine
from gpufab_cli.lab.hardware import gpu_software
from gpufab_cli.lab.hardware.model import Hardware
from gpufab_cli.lab.hardware.sysfs.mount import build
from gpufab_cli.lab.hardware.sysfs.numa import PROC, SETTINGS
from gpufab_cli.lab.hardware.sysfs.tree import Binary, Directory, File, Link
from gpufab_cli.lab.hardware.tools import dispatch
from gpufab_cli.lab.hardware.tools.answer import Request
from gpufab_cli.lab.hardware.vf_state import vf_name
from gpufab_cli.module_utils.change import ABSENT, Unknown
from gpufab_cli.module_utils.host import ForbiddenQueryError, HostError, Output
from gpufab_cli.module_utils.queries import allowed, batch
from tests.fakes import FakeHost
from tests.unit.lab.conftest import FakeNode

LOOPBACK = '[{"ifname":"lo","addr_info":[]}]\n'  # the rails have no addresses
SHOWN = '[{"ifname":"%s","link_type":"ether"}]\n'


ARP = ("arp_ignore", "arp_announce", "rp_filter")
OWN_PROC = tuple(f"/proc/{name}" for name in ("irq", "interrupts", *SETTINGS))


def own(path):
    """The path below /sys of what the machine shows there or in /proc; the others' are a dictionary's."""
    if path.startswith("/sys/"):
        return path
    return f"/sys{PROC}{path.removeprefix('/proc')}" if path.startswith(OWN_PROC) else ""


class LiveNode(FakeNode):
    """Interfaces that come and go with VFs, with the addresses they were given."""

    def __init__(self, hardware, given):
        super().__init__(hardware)
        self.given = given

    def ipv4(self, name):
        return [self.given[name]] if name in self.given else super().ipv4(name)

    def ip(self, *argv):
        return SHOWN % argv[-1]


class FakePlug:
    """What VFs bring, noted."""

    def __init__(self, hardware):
        self.hardware, self.files = hardware, set()

    def attach(self, rail, index, name, mac):
        self.hardware.node.interfaces[name] = (1, mac)
        self.hardware.node.mtus[name] = 9000

    def detach(self, rail, index):
        name = vf_name(self.hardware.machine.ports[rail].netdev, index)
        self.hardware.node.interfaces.pop(name, None)

    def device(self, path, present):
        (self.files.add if present else self.files.discard)(path)


class Forgetful(Hardware):
    """Ends with its test: its state is not written down at each change, as no process after it is to find it."""

    def save(self):
        pass


class LabHost(FakeHost):
    """One machine of the lab; ``hardware`` is its insides.

    ``cpus`` on each NUMA node that has any: all that a real one has would be most of the tree, which is built anew with
    each VF. None is all the same, and so is None of the ports.
    """

    def __init__(self, folder: Path, kind="hgx-h100", name="gpu01", rails=2, *, gpus=None, cpus=1):
        super().__init__()
        self.addresses, self.given = LOOPBACK, {}
        whole = machine.load(kind)
        found = replace(whole, ports=whole.ports[:rails], gpus=whole.gpus[: rails if gpus is None else gpus])
        if cpus is not None:
            numa = [
                replace(node, cpus=f"{n * cpus}-{n * cpus + cpus - 1}") if node.cpus else node
                for n, node in enumerate(whole.numa)
            ]
            found = replace(found, numa=tuple(numa))
        self.hardware = Forgetful(found, machine.Identity(name), folder / f"{name}.json")
        self._tree, self._found = (-1, None, None), {}
        self.boot()

    def give(self, **networks):
        """Interfaces with IPv4 addresses, as NAME=ADDRESS/PREFIX."""
        told = [
            {"ifname": name, "addr_info": [{"local": text.split("/")[0], "prefixlen": int(text.split("/")[1])}]}
            for name, text in networks.items()
        ]
        self.addresses = json.dumps(told)
        self.given.update({name: text.split("/")[0] for name, text in networks.items()})

    def boot(self):
        self.hardware.reboot()
        self.hardware.node = LiveNode(self.hardware, self.given)
        self.hardware.plug = FakePlug(self.hardware)
        self.files["/proc/sys/kernel/random/boot_id"] = self.hardware.state.boot_id
        for name, text in gpu_software.proc_files(self.hardware).items():
            self.files[f"/proc/{name}"] = text
        for name in ("all", *(port.netdev for port in self.hardware.machine.ports)):
            self.files.update({f"/proc/sys/net/ipv4/conf/{name}/{setting}": "0" for setting in ARP})
        self.files["/proc/cpuinfo"] = "processor\t: 0\nvendor_id\t: GenuineIntel\n"

    def tree(self):
        now = (self.hardware.structure, tuple(self.hardware.live().names()))
        if self._tree[:2] != now:
            self._tree, self._found = (*now, build(self.hardware)), {}
        return self._tree[2]

    def _entry(self, path):
        """The entry of a path below /sys, links on the way followed; None where there is none."""
        tree = self.tree()
        if path not in self._found:
            self._found[path] = self._look(tree, path.removeprefix("/sys"))
        return self._found[path]

    @staticmethod
    def _look(tree, path):
        if (entry := tree.find(path)) is not None:
            return entry
        parts, here = path.strip("/").split("/"), ""
        for number, part in enumerate(parts):
            here = f"{here}/{part}"
            entry = tree.find(here)
            if isinstance(entry, Link) and number < len(parts) - 1:
                here = os.path.normpath(f"{here}/../{entry.target}")
        return tree.find(here)

    def read_bytes(self, path):
        if not own(path):
            return super().read_bytes(path)
        entry = self._entry(own(path))
        if isinstance(entry, Binary):
            return entry.read() if self._uid == 0 else entry.read()[: entry.public]
        if not isinstance(entry, File):
            return ABSENT
        try:
            return entry.read().encode()
        except OSError as error:
            return Unknown(f"{path}: {error.strerror}")

    def names(self, path):
        if not path.startswith("/sys/"):
            return super().names(path)
        entry = self._entry(path + "/.") or self._entry(path)
        if isinstance(entry, Link):
            entry = self._entry(os.path.normpath(f"{path}/../{entry.target}"))
        return tuple(sorted(entry.names)) if isinstance(entry, Directory) else ABSENT

    def link(self, path):
        if path == gpu_software.LIBRARY:
            return f"libnvidia-ml.so.{gpu_software.installed(self.hardware)}"
        if not path.startswith("/sys/"):
            return super().link(path)
        entry = self._entry(path)
        return entry.target if isinstance(entry, Link) else ABSENT

    def mode(self, path):
        entry = self._entry(own(path)) if own(path) else None
        return entry.mode if isinstance(entry, File | Binary) else super().mode(path)

    def inode(self, path):
        entry = self._entry(path)
        return ABSENT if entry is None else 1 + getattr(entry, "generation", 0)

    def has(self, tool):
        """Whether the machine comes with an emulated tool."""
        return tool in dispatch._TOOLS and self.hardware.machine.has_tool(tool)

    def installed(self, program):
        return self.has(program) or super().installed(program)

    def exists(self, path):
        if path.startswith("/sys/"):
            return self._entry(path) is not None
        return self.has(path.removeprefix("/usr/bin/")) or super().exists(path)

    def _answer(self, argv):
        if not self.has(argv[0]):
            return super()._answer(argv)
        said = dispatch.answer(self.hardware, Request(argv[0], tuple(argv[1:]), 0, 1))
        if said.program and argv[1:4] == ("link", "set", "dev"):
            (self.hardware.node.down.discard if argv[-1] == "up" else self.hardware.node.down.add)(argv[4])
        if said.program:
            return Output(0, self.addresses if "addr" in argv else "[]" if "-j" in argv else "", "")
        return Output(said.rc, said.stdout, said.stderr)

    def batch(self, commands):
        argv, stdin = batch(commands)
        if not self.has(argv[0]):
            return super().batch(commands)
        said = dispatch.answer(self.hardware, Request(argv[0], argv[1:], 0, 1, stdin=stdin))
        return Output(said.rc, said.stdout, said.stderr)

    def query(self, *argv):
        if not allowed(argv):
            raise ForbiddenQueryError(" ".join(argv))
        return self._answer(argv)

    def set(self, path, value):
        if not own(path):
            super().set(path, value)
            return
        entry = self._entry(own(path))
        if not isinstance(entry, File) or entry.write is None:
            raise HostError(f"cannot write {path}: {os.strerror(errno.EACCES)}")
        self.writes.append((path, value))
        try:
            with self.hardware.writes.write("sysfs", path, value):
                entry.write(value + "\n")
        except OSError as error:
            raise HostError(f"cannot write {path}: {error.strerror}") from error

    def patch(self, path, offset, content):
        self.writes.append((path, offset, content))
        with self.hardware.writes.write("sysfs", path, content.hex()):
            self._entry(path).write(offset, content)

    def make_directory(self, path):
        self._directory(path.rpartition("/")[0], "make", path.rpartition("/")[2])

    def remove_directory(self, path):
        self._directory(path, "remove")

    def _directory(self, path, act, *name):
        directory = self._entry(path)
        if name and name[0] in directory.names:
            return
        self.writes.append((path, act, *name))
        getattr(directory, act)(*name)

    @contextmanager
    def quiet(self):
        """Whatever is done meanwhile must write nothing."""
        before = list(self.writes)
        yield
        assert self.writes == before
