"""The node image: Debian packages made into a root file system, built once and kept by podman."""

import hashlib
import tempfile
from collections.abc import Callable
from pathlib import Path

from gpufab_cli.lab import podman
from gpufab_cli.lab.shell import run

_HERE = Path(__file__).parent / "image"
_SUITE = "trixie"
_PACKAGES = (
    "ca-certificates",
    "dbus",
    "ethtool",
    "iproute2",
    "iputils-ping",
    "openssh-server",
    "procps",
    "python3",
    "python3-apt",
    "sudo",
    "systemd",
    "systemd-sysv",
    "udev",
)
_BUILD_S = 1200


def recipe() -> str:
    """A hash of everything the image is made from."""
    digest = hashlib.sha256(" ".join((_SUITE, *_PACKAGES)).encode())
    for path in sorted(_HERE.rglob("*")):
        if path.is_file():
            digest.update(str(path.relative_to(_HERE)).encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def ensure(say: Callable[[str], None]) -> str:
    """Gives the image's tag, after building it if need be.

    Raises:
        LabError: A package or a program is missing.
    """
    tag = f"localhost/gpufab-lab:{recipe()}"
    if podman.has_image(tag):
        return tag
    say(f"building the node image from Debian {_SUITE} packages (once, about a minute)")
    with tempfile.TemporaryDirectory(prefix="gpufab-lab-") as scratch:
        tarball = Path(scratch) / "root.tar"
        include = ",".join(_PACKAGES)
        customize = f"'{_HERE / 'customize.sh'}' \"$1\""
        argv = ["mmdebstrap", "--quiet", "--variant=minbase", f"--include={include}", f"--customize-hook={customize}"]
        run([*argv, _SUITE, str(tarball)], timeout=_BUILD_S)
        say("importing the node image")
        podman.import_image(tarball, tag)
    return tag
