"""Operating systems that a node can have. Debian is itself; the others are look-alikes, and say so.

No image registry and no other distribution's archive is needed: a look-alike is Debian 12 with the other's identity
(os-release, package manager, its configuration) and without the archive that the other does not have. Two more are
Debian with its own Open MPI, for nodes that need not install it anew.
"""

from dataclasses import dataclass

from gpufab_cli.lab.errors import LabError

DEFAULT = "debian13"
# Of all platforms. apt's Python binding is what Ansible's modules for packages need on a node.
PACKAGES = (
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


@dataclass(frozen=True)
class Platform:
    """One of them.

    Attributes:
        suite: the Debian suite whose packages it is made of; "" for one that is made from another platform.
        base: that other platform.
        folder: the folder of image/ whose Containerfile makes it from its base.
    """

    name: str
    suite: str = ""
    base: str = ""
    folder: str = ""


_PLATFORMS = {
    platform.name: platform
    for platform in (
        Platform("debian13", suite="trixie"),
        Platform("debian12", suite="bookworm"),
        Platform("ubuntu2404", base="debian12", folder="ubuntu2404"),
        Platform("rocky9", base="debian12", folder="rocky9"),
        Platform("debian13-mpi", base="debian13", folder="mpi"),
        Platform("debian12-mpi", base="debian12", folder="mpi"),
    )
}


def names() -> list[str]:
    """All platforms."""
    return sorted(_PLATFORMS)


def load(name: str) -> Platform:
    """A platform by its name.

    Raises:
        LabError: There is none of that name.
    """
    try:
        return _PLATFORMS[name]
    except KeyError:
        raise LabError(f"no platform {name!r}", hint=f"known: {', '.join(names())}") from None
