"""The platforms, and what each stack's packages are called there: a table. Where it is silent, gpufab refuses.

Names: package indexes of Debian 12 and 13, Ubuntu 22.04 and 24.04 and RHEL 9; NVIDIA's DOCA-Host and MLNX_OFED
installation guides; NCCL installation guide. docs/packages.md says which of them were tried.
"""

import re
from dataclasses import dataclass
from typing import Dict, Literal, Mapping, Optional, Tuple, Union

from ..change import ABSENT, Absent, Unknown
from ..host import Reader

Manager = Literal["apt", "dnf"]


@dataclass(frozen=True)
class Platform:
    """A distribution in a major release.

    ``name`` and ``release`` are what vendors' repositories call it, ``arch`` the architecture likewise.
    """

    name: str
    release: str
    manager: Manager
    arch: str = "x86_64"

    def resolve(self, url: str) -> str:
        """The URL with the node's own words in the place of {platform}, {release} and {arch}."""
        for word, value in (("platform", self.name), ("release", self.release), ("arch", self.arch)):
            url = url.replace("{" + word + "}", value)
        return url


_RHEL = ("rhel", "rocky", "almalinux", "centos", "ol")
_KNOWN: Dict[Tuple[str, str], Tuple[str, str, Manager]] = {
    ("debian", "12"): ("debian12", "debian12", "apt"),
    ("debian", "13"): ("debian13", "debian13", "apt"),
    ("ubuntu", "22.04"): ("ubuntu2204", "ubuntu22.04", "apt"),
    ("ubuntu", "24.04"): ("ubuntu2404", "ubuntu24.04", "apt"),
    **{(name, "9"): ("rhel9", "rhel9", "dnf") for name in _RHEL},
}
_ARCHITECTURES = {"x86_64": "x86_64", "aarch64": "sbsa"}

ROOTS: Mapping[Manager, Mapping[str, Tuple[str, ...]]] = {
    "apt": {
        "mlnx-ofed": ("mlnx-ofed-all",),
        "inbox": (
            "rdma-core",
            "ibverbs-utils",
            "rdmacm-utils",
            "perftest",
            "mstflint",
            "infiniband-diags",
            "iproute2",
        ),
        "nccl": ("libnccl2",),
        "nccl-dev": ("libnccl-dev",),
    },
    "dnf": {
        "mlnx-ofed": ("mlnx-ofed-all",),
        "inbox": (
            "rdma-core",
            "libibverbs-utils",
            "librdmacm-utils",
            "perftest",
            "mstflint",
            "infiniband-diags",
            "iproute",
        ),
        "nccl": ("libnccl",),
        "nccl-dev": ("libnccl-devel",),
    },
}
KERNEL_SUPPORT = ("doca-extra", "doca-kernel-support")
NCCL_TESTS = ("nccl-tests",)
PROFILES = ("doca-roce", "doca-ofed", "doca-networking", "doca-all")
"""From the smallest to the largest: each holds those before it."""
FIRMWARE_UPDATER = "mlnx-fw-updater"
"""Burns the firmware of every card while it is being installed."""
VENDOR_NAMES = ("doca-*", "mlnx-*", "ofed-scripts", "kernel-mft*", "mft", "mft-*", "knem*", "iser-dkms", "isert-dkms")
"""What only the vendor's stacks hold; the distribution's is left when they are gone."""
VENDOR_VERSIONS = ("*mlnx*", "*MLNX*", "*OFED*")
"""What the vendor writes into the versions of packages that the distribution has too, such as rdma-core."""

VENDOR_NCCL = ("*+cuda*",)
"""The vendor builds NCCL for a CUDA, and says so; distributions do not."""


def identify(host: Reader) -> Union[Platform, Absent, Unknown]:
    """The platform of the node; ABSENT when it is none of the table's."""
    text, machine = host.read("/etc/os-release"), host.query("uname", "-m")
    if not isinstance(text, str):
        return Unknown(f"/etc/os-release: {text}")
    if isinstance(machine, Unknown) or machine.rc != 0:
        return machine if isinstance(machine, Unknown) else Unknown(f"uname: {machine.error}")
    arch = _ARCHITECTURES.get(machine.stdout.strip())
    words = dict(re.findall(r'^([A-Z_]+)="?([^"\n]*)"?$', text, re.MULTILINE))
    found = _known(words.get("ID", ""), words.get("VERSION_ID", ""))
    return Platform(*found, arch) if found and arch else ABSENT


def _known(name: str, version: str) -> Optional[Tuple[str, str, Manager]]:
    return _KNOWN.get((name, version)) or _KNOWN.get((name, version.split(".", 1)[0]))
