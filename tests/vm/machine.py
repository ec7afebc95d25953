"""A machine: one QEMU process without KVM, its disk an overlay of the image.

KVM is never asked for: where its device can be opened, guests may still never run.
"""

import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from tests.vm.guest import Guest
from tests.vm.image import Image
from tests.vm.qmp import Monitor, RefusedError

BOOT_S = 600
BOOT_ID = "cat /proc/sys/kernel/random/boot_id"
_PORTS_A_NODE = 2
_MEMORY_MB = 768
_T = TypeVar("_T")
_SLOTS = 2  # empty ones, for what is plugged in while it runs


@dataclass(frozen=True)
class Nic:
    """A rail port.

    Attributes:
        number: from 0.
        node: the NUMA node of its root port.
    """

    number: int

    @property
    def node(self) -> int:
        return self.number % 2

    @property
    def id(self) -> str:
        return f"rail{self.number}"

    def mac(self, machine: int) -> str:
        return f"52:54:00:67:{machine:02x}:{self.number:02x}"


class Machine:
    """One of them; `number` tells it from its peers."""

    def __init__(self, image: Image, folder: Path, number: int = 1, ports: int = 2, wire: Path | None = None) -> None:
        self.image, self.folder, self.number, self.wire = image, folder, number, wire
        self.name = f"gpu{number:02d}"
        self.nics = [Nic(index) for index in range(ports)]
        self.disk = folder / f"{self.name}.qcow2"
        self.console = folder / f"{self.name}.console"
        self.cmdline = ""
        # The path of a socket holds 107 bytes, and pytest's folders are longer.
        self.short = Path(tempfile.mkdtemp(prefix="gpufab-vm-"))
        self._process: subprocess.Popen[bytes] | None = None
        self._monitor: Monitor | None = None
        self.guest = Guest(
            self.name, image.folder / "id_ed25519", image.folder / "host_key.pub", folder, self.short / "ssh"
        )

    def create_disk(self) -> None:
        """Start from the image again."""
        self.disk.unlink(missing_ok=True)
        base = str(self.image.folder / "disk.qcow2")
        self.image.tools.run("qemu-img", "create", "-q", "-f", "qcow2", "-b", base, "-F", "qcow2", str(self.disk))

    def start(self, *options: str) -> "Machine":
        """Power on; returns as soon as the monitor answers."""
        if not self.disk.exists():
            self.create_disk()
        socket_path = self.short / "qmp"
        # The kernel kills the machine when pytest is gone, however that ends.
        argv = ["setpriv", "--pdeathsig", "KILL"]
        argv += self.image.tools.argv("qemu-system-x86_64", *self._arguments(socket_path), *options)
        with (self.folder / f"{self.name}.qemu").open("ab") as log:
            self._process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=self.folder)
        wait(lambda: socket_path.exists() or not self.runs(), 60, f"monitor of {self.name}")
        if not self.runs():
            raise RuntimeError((self.folder / f"{self.name}.qemu").read_text()[-2000:])
        self._monitor = Monitor(socket_path)
        return self

    def runs(self) -> bool:
        """Whether the process is there."""
        return self._process is not None and self._process.poll() is None

    @property
    def monitor(self) -> Monitor:
        assert self._monitor, f"{self.name} is not on"
        return self._monitor

    def stop(self) -> None:
        """Pull the plug."""
        self.guest.close()
        if self._monitor:
            self._monitor.close()
            self._monitor = None
        if self._process:
            self._process.kill()
            self._process.wait(30)
            self._process = None
        (self.short / "qmp").unlink(missing_ok=True)

    def close(self) -> None:
        """Pull the plug and keep nothing but the logs."""
        self.stop()
        shutil.rmtree(self.short, ignore_errors=True)
        self.disk.unlink(missing_ok=True)

    def wait_up(self, other_than: str = "", timeout: float = BOOT_S) -> str:
        """Wait for SSH of another boot than the one told; give the boot's id."""

        def booted() -> str:
            if not self.runs():
                raise RuntimeError(f"{self.name} has ended\n{self.tail()}")
            said = self.guest.answers(BOOT_ID, timeout=60)
            return said if said != other_than else ""

        return wait(booted, timeout, f"boot of {self.name}", self.tail)

    def tail(self) -> str:
        """The end of what the console showed."""
        return self.console.read_text(errors="replace")[-3000:] if self.console.exists() else ""

    def reboot(self) -> str:
        """Reboot from inside; give the new boot's id once SSH answers."""
        before = self.guest.root(BOOT_ID).strip()
        self.guest.answers("sudo -n systemctl reboot", timeout=60)
        self.guest.close()
        return self.wait_up(before)

    def power_cycle(self, cmdline: str = "") -> str:
        """Pull the plug and power on again, with more words on the kernel's command line; give the new boot's id."""
        self.guest.root("sync")
        self.stop()
        self.cmdline = cmdline
        return self.start().wait_up()

    def settle(self, timeout: float = BOOT_S) -> str:
        """Wait until nothing is left to start; give the state, such as running or degraded."""
        return wait(
            lambda: self.guest.done("systemctl is-system-running --wait", timeout=timeout).stdout.strip() or "",
            timeout,
            f"state of {self.name}",
        )

    def save(self, name: str) -> None:
        """Keep disk, memory and devices under a name."""
        self.guest.root("sync")
        self._human(f"savevm {name}")

    def load(self, name: str) -> None:
        """Go back to what was kept, and set the clock; SSH has another port then, for old connections lead nowhere."""
        old = self.guest.port
        new = self.guest.move()
        self.monitor.command("stop")
        self._human(f"loadvm {name}")
        self._human(f"hostfwd_remove mgmt tcp:127.0.0.1:{old}", quiet=False)
        self._human(f"hostfwd_add mgmt tcp:127.0.0.1:{new}-:22")
        self.monitor.command("cont")
        self.wait_up(timeout=180)
        self.guest.root(f"date -s @{time.time():.0f}")

    def _human(self, line: str, *, quiet: bool = True) -> None:
        said = self.monitor.human(line).strip()
        if said and quiet:
            raise RefusedError(f"{line}: {said}")

    def plug(self, nic: Nic, bus: str) -> None:
        """Add a port to a root port while the machine runs."""
        if nic not in self.nics:
            self.monitor.command("netdev_add", type="hubport", id=f"n{nic.id}", hubid=100 + nic.number)
        mac = nic.mac(self.number)
        self.monitor.command("device_add", driver="igb", id=nic.id, bus=bus, netdev=f"n{nic.id}", mac=mac)

    def unplug(self, nic: Nic) -> None:
        """Ask the machine to let a port go."""
        self.monitor.command("device_del", id=nic.id)

    def _arguments(self, socket_path: Path) -> list[str]:
        folder = self.image.folder
        said = "root=/dev/vda ro console=ttyS0 intel_iommu=on iommu=pt net.ifnames=1 panic=-1"
        said += f" systemd.hostname={self.name} {self.cmdline}"
        network = f"user,id=mgmt,net=10.0.{self.number + 1}.0/24,restrict=off"
        forward = f"hostfwd=tcp:127.0.0.1:{self.guest.port}-:22"
        given = ["-nodefaults", "-no-user-config", "-display", "none", "-name", f"gpufab-vm-{self.name}"]
        given += ["-machine", "q35,accel=tcg", "-cpu", "max,la57=off", "-m", str(2 * _MEMORY_MB), "-smp", "2"]
        for node in range(2):
            given += ["-object", f"memory-backend-ram,id=m{node},size={_MEMORY_MB}M"]
            given += ["-numa", f"node,nodeid={node},memdev=m{node},cpus={node}"]
        given += ["-numa", "dist,src=0,dst=1,val=21", "-L", str(self.image.tools.root / "usr/share/seabios")]
        given += ["-L", str(self.image.tools.root / "usr/share/qemu")]
        given += ["-device", "intel-iommu", "-serial", f"file:{self.console}"]
        given += ["-kernel", str(folder / "vmlinuz"), "-initrd", str(folder / "initrd"), "-append", said]
        given += ["-drive", f"file={self.disk},if=none,id=disk,format=qcow2,cache=writeback"]
        given += ["-device", "virtio-blk-pci,drive=disk", "-netdev", f"{network},{forward}"]
        given += ["-device", "virtio-net-pci,netdev=mgmt,romfile="]
        given += ["-qmp", f"unix:{socket_path},server=on,wait=off", "-device", "virtio-rng-pci"]
        given += ["-monitor", f"unix:{self.short / 'hmp'},server=on,wait=off"]
        return given + self._ports()

    def _ports(self) -> list[str]:
        """Root ports on both NUMA nodes, with the rail ports and empty slots."""
        given = []
        for node in range(2):
            given += ["-device", f"pxb-pcie,id=host{node},bus_nr={64 * (node + 1)},numa_node={node},bus=pcie.0"]
        names = [*((f"port{nic.number}", nic.node) for nic in self.nics), *((f"slot{n}", n % 2) for n in range(_SLOTS))]
        for index, (name, node) in enumerate(names):
            given += ["-device", f"pcie-root-port,id={name},bus=host{node},chassis={index + 1},slot={index + 1}"]
        for nic in self.nics:
            given += self._nic(nic)
        return given

    def _nic(self, nic: Nic) -> list[str]:
        """A port, on a wire to the peer machine where there is one."""
        if self.wire:
            ends = [str(self.wire / f"{nic.id}-{number}") for number in (self.number, 3 - self.number)]
            wire = f"dgram,id=n{nic.id},local.type=unix,local.path={ends[0]},remote.type=unix,remote.path={ends[1]}"
        else:
            wire = f"hubport,id=n{nic.id},hubid={100 + nic.number}"
        bus = f"port{nic.number}"
        return ["-netdev", wire, "-device", f"igb,id={nic.id},bus={bus},netdev=n{nic.id},mac={nic.mac(self.number)}"]


def wait(question: Callable[[], _T], seconds: float, what: str, tail: Callable[[], str] = str) -> _T:
    """Ask until the answer is true; fail with a reason after a while."""
    end = time.monotonic() + seconds
    while True:
        if answer := question():
            return answer
        if time.monotonic() > end:
            raise TimeoutError(f"no {what} within {seconds:.0f} s\n{tail()}")
        time.sleep(0.3)
