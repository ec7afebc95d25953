"""A Debian 13 root with QEMU 10, a compiler and the kernel: what the machines are made and run with.

The host's own apt sources stay as they are. Single programs run straight out of the root by its own loader, which needs
neither mounts nor a chroot; a compiler, which starts others, gets a chroot.
"""

import subprocess
from collections.abc import Callable
from pathlib import Path

from gpufab_cli.lab.image import archive
from tests.vm import cache

SUITE = "trixie"
PACKAGES = (
    "bc",
    "busybox-static",
    "e2fsprogs",
    "gcc",
    "kmod",
    "libelf-dev",
    "linux-headers-amd64",
    "linux-image-amd64",
    "linux-source-6.12",
    "make",
    "qemu-system-x86",
    "qemu-utils",
    "xz-utils",
)
# No initrd of the distribution is needed, and no cache of packages.
_HOOKS = (
    '--essential-hook=mkdir -p "$1/etc/kernel/postinst.d"',
    '--customize-hook=rm -f "$1"/boot/initrd.img-*',
)
_BUILD_S = 1200


class Tools:
    """The root, once it is there."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def argv(self, program: str, *arguments: str) -> list[str]:
        """A command line of one of its programs on the host."""
        path = next(
            path for path in (self.root / "usr" / folder / program for folder in ("bin", "sbin")) if path.exists()
        )
        loader = self.root / "lib64/ld-linux-x86-64.so.2"
        return [str(loader), "--library-path", str(self.root / "usr/lib/x86_64-linux-gnu"), str(path), *arguments]

    def run(self, program: str, *arguments: str, timeout: float = 300) -> str:
        """Run one of its programs on the host; it must exit 0."""
        return run(self.argv(program, *arguments), timeout)

    @property
    def kernel(self) -> str:
        """The release of its kernel, such as 6.12.118+deb13-amd64."""
        return next(path.name.removeprefix("vmlinuz-") for path in (self.root / "boot").glob("vmlinuz-*"))


def run(argv: list[str], timeout: float) -> str:
    """Run a program and give its output; it must exit 0."""
    done = subprocess.run(argv, capture_output=True, text=True, timeout=timeout, check=False, stdin=subprocess.DEVNULL)
    if done.returncode:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise RuntimeError(f"{' '.join(argv)}: exit {done.returncode}\n{tail}")
    return done.stdout


def bootstrap(root: Path, suite: str, packages: tuple[str, ...], *options: str) -> None:
    """Make a Debian root from this machine's own mirrors."""
    argv = ["mmdebstrap", "--quiet", "--mode=root", "--variant=minbase", f"--include={','.join(packages)}", *options]
    # In mount namespaces of its own: what it mounts goes with it, however it ends.
    run(["unshare", "--mount", *argv, suite, str(root), *archive(suite)], _BUILD_S)


def ensure(say: Callable[[str], None]) -> Tools:
    """The tools, built if need be (some three minutes)."""

    def build(folder: Path) -> None:
        say("building the chroot with QEMU, compiler and kernel (once, some minutes)")
        bootstrap(folder / "root", SUITE, PACKAGES, *_HOOKS)

    key = cache.digest(SUITE, *PACKAGES, *_HOOKS)
    return Tools(cache.layer("tools", key, build, say) / "root")
