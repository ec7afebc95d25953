"""The disk that machines start from: a Debian root with the tier's kernel modules, on ext4 with its journal."""

import shutil
import subprocess
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from tests.vm import cache, chroot
from tests.vm.chroot import Tools, run

PACKAGES = (
    "ca-certificates",
    "dbus",
    "e2fsprogs",
    "ethtool",
    "ibverbs-providers",
    "ibverbs-utils",
    "iproute2",
    "iputils-ping",
    "kmod",
    "libpam-systemd",
    "openmpi-bin",
    "openssh-server",
    "pciutils",
    "perftest",
    "procps",
    "python3",
    "rdma-core",
    "rdmacm-utils",
    "sudo",
    "systemd",
    "systemd-sysv",
    "udev",
)
# What the root file system takes, loaded by the initrd.
_FIRST = ("virtio_blk", "ext4")
# What the machine may load itself, with all that these need; anything else of the kernel's tree stays away.
_MODULES = (
    *_FIRST,
    "8021q",
    "autofs4",
    "bonding",
    "crc32_generic",  # of rdma_rxe, which asks for it by the name of its algorithm
    "crc32_pclmul",
    "dca",  # these two of igb, and so of the driver that is made of it
    "i2c-algo-bit",
    "igbvf",
    "ib_umad",
    "ib_uverbs",
    "intel_rapl_msr",
    "loop",
    "overlay",
    "rdma_cm",
    "rdma_rxe",
    "rdma_ucm",
    "vfio-pci",
    "virtio_net",
)
_STOCK_NIC = "igb"
_KERNEL = cache.HERE / "kernel"
_GUEST = cache.HERE / "guest"
_SIZE = "3G"
_BUILD_S = 900


@dataclass(frozen=True)
class Image:
    """What a machine is started from.

    Attributes:
        folder: holds disk.qcow2, vmlinuz, initrd, id_ed25519 and host_key.pub.
        suite: the Debian suite.
    """

    folder: Path
    suite: str
    tools: Tools


def ensure(say: Callable[[str], None], suite: str = chroot.SUITE) -> Image:
    """The image of a suite, built if need be."""
    tools = chroot.ensure(say)
    root = _root(suite, say)
    modules = _own_modules(tools, say)
    inputs = (root.parent.name, modules.parent.name if modules else _STOCK_NIC, tools.root.parent.name)
    key = cache.digest(*inputs, *_MODULES, _SIZE, _GUEST, Path(__file__))
    folder = cache.layer(f"image-{suite}", key, lambda half: _build(half, tools, root, modules), say)
    return Image(folder, suite, tools)


def _root(suite: str, say: Callable[[str], None]) -> Path:
    """A root of packages alone."""

    def build(folder: Path) -> None:
        say(f"installing the packages of a {suite} machine (once, about a minute)")
        chroot.bootstrap(folder / "root", suite, PACKAGES)

    return cache.layer(f"guest-{suite}", cache.digest(suite, *PACKAGES), build, say) / "root"


def _own_modules(tools: Tools, say: Callable[[str], None]) -> Path | None:
    """The tier's own kernel modules, built inside the chroot."""
    if not (_KERNEL / "build.sh").exists():
        return None

    def build(folder: Path) -> None:
        say("building the kernel modules (once, about a minute)")
        source, out = (tools.root / "tmp" / name for name in ("vm-kernel", "vm-kernel-out"))
        for path in (source, out):
            shutil.rmtree(path, ignore_errors=True)
        shutil.copytree(_KERNEL, source)
        out.mkdir()
        line = f'mount -t proc proc "{tools.root}/proc" && exec chroot "{tools.root}" "$@"'
        inside = ["/tmp/vm-kernel/build.sh", "/tmp/vm-kernel", "/tmp/vm-kernel-out"]
        run(["unshare", "--mount", "sh", "-ec", line, "sh", *inside], _BUILD_S)
        shutil.copytree(out, folder / "modules")
        for path in (source, out):
            shutil.rmtree(path)

    return cache.layer("modules", cache.digest(tools.root.parent.name, _KERNEL), build, say) / "modules"


def _build(folder: Path, tools: Tools, root: Path, modules: Path | None) -> None:
    mine = folder / "root"
    run(["cp", "-a", str(root), str(mine)], _BUILD_S)
    key = folder / "id_ed25519"
    run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "gpufab-vm", "-f", str(key)], 30)
    run([str(_GUEST / "customize.sh"), str(mine), f"{key}.pub"], _BUILD_S)
    shutil.copy(mine / "etc/ssh/ssh_host_ed25519_key.pub", folder / "host_key.pub")
    _modules(tools, mine, modules)
    shutil.copy(tools.root / f"boot/vmlinuz-{tools.kernel}", folder / "vmlinuz")
    _initrd(folder, tools, mine)
    _disk(folder, tools, mine)
    shutil.rmtree(mine)


def _modules(tools: Tools, root: Path, own: Path | None) -> None:
    """Puts the kernel's modules where modprobe finds them, those of the tier before the kernel's."""
    base = Path("usr/lib/modules") / tools.kernel
    target = root / base
    for name in (*_MODULES, *(() if own else (_STOCK_NIC,))):
        for path in _needed(tools, name):
            copy = target / path.relative_to(tools.root / base)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copy)
    for name in ("modules.order", "modules.builtin", "modules.builtin.modinfo"):
        shutil.copy(tools.root / base / name, target / name)
    if own:
        (target / "updates").mkdir()
        for path in own.glob("*.ko"):
            shutil.copy(path, target / "updates")
    tools.run("depmod", "-b", str(root), tools.kernel)


def _needed(tools: Tools, name: str) -> list[Path]:
    """A module's file and those it needs, in the order of loading; none for what is built in."""
    argv = ["--show-depends", "-d", str(tools.root), "-S", tools.kernel, "-C", "/nonexistent", name]
    words = [line.split() for line in tools.run("modprobe", *argv).splitlines()]
    return [Path(word[1]).resolve() for word in words if word[0] == "insmod"]


def _initrd(folder: Path, tools: Tools, root: Path) -> None:
    base = folder / "initrd.d"
    (base / "modules").mkdir(parents=True)
    (base / "bin").mkdir()
    busybox = tools.root / "usr/bin/busybox"
    shutil.copy(busybox, base / "bin/busybox")
    shutil.copy(_GUEST / "initrd", base / "init")
    (base / "init").chmod(0o755)
    order: dict[str, None] = {}
    for path in (path for name in _FIRST for path in _needed(tools, name)):
        name = path.name.removesuffix(".xz")
        order[name] = None
        with (base / "modules" / name).open("wb") as plain:
            subprocess.run(tools.argv("xz", "-dc", str(path)), stdout=plain, check=True)
    (base / "modules/order").write_text("".join(f"{name}\n" for name in order))
    _archive(base, folder / "initrd", busybox)
    shutil.rmtree(base)


def _archive(base: Path, into: Path, busybox: Path) -> None:
    names: Iterable[str] = sorted(str(path.relative_to(base)) for path in base.rglob("*"))
    with into.open("wb") as archive:
        argv = [str(busybox), "cpio", "-o", "-H", "newc"]
        said = "".join(f"{name}\n" for name in names).encode()
        subprocess.run(argv, input=said, stdout=archive, stderr=subprocess.DEVNULL, cwd=base, check=True)


def _disk(folder: Path, tools: Tools, root: Path) -> None:
    raw = folder / "disk.raw"
    tools.run("mke2fs", "-q", "-t", "ext4", "-L", "root", "-d", str(root), str(raw), _SIZE, timeout=_BUILD_S)
    tools.run("qemu-img", "convert", "-O", "qcow2", str(raw), str(folder / "disk.qcow2"))
    raw.unlink()
