"""A node with apt or dnf made of dictionaries, and what is wanted of its packages."""

from dataclasses import replace

from gpufab_cli.module_utils.change import ABSENT
from gpufab_cli.module_utils.devices import Devices
from gpufab_cli.module_utils.packages import files
from gpufab_cli.module_utils.packages.plan import plan
from gpufab_cli.module_utils.packages.platforms import Platform
from gpufab_cli.module_utils.packages.recipe import recipe
from gpufab_cli.module_utils.packages.seen import Database, KernelState, Package, PackagesSeen
from gpufab_cli.module_utils.packages.want import NcclWant, OfedWant, RepositoryWant
from gpufab_cli.module_utils.snapshot import Snapshot

KEY = """\
-----BEGIN PGP PUBLIC KEY BLOCK-----

mDMEaw2G2hYJKwYBBAHaRw8BAQdAO5h55QKjXCfAlsOsDEn34oTngbWb3+cRxjpw
N54Xzba0GnRlc3QgPHRlc3RAZ3B1ZmFiLmludmFsaWQ+iJAEExYIADgWIQSMUv6+
aozltglJ1pArZCIcb+xt7gUCaw2G2gIbAwULCQgHAgYVCgkICwIEFgIDAQIeAQIX
gAAKCRArZCIcb+xt7occAQCVMnjGJDI2GmPwZzXoD0W6o0apd+OMwM+GUkgm05Qi
ZwEAmsTNGEQozQj0M7GZtp5iUQ4iRFhlG2aWP3HSQpNrdgw=
=vdqJ
-----END PGP PUBLIC KEY BLOCK-----
"""
FINGERPRINT = "8C52FEBE6A8CE5B60949D6902B64221C6FEC6DEE"
KERNEL = "6.8.0-45-generic"
UBUNTU = Platform("ubuntu2404", "ubuntu24.04", "apt")
ROCKY = Platform("rhel9", "rhel9", "dnf")
REPOSITORY = RepositoryWant("https://mirror.example/doca/3.2.0/{release}/{arch}", KEY.strip(), FINGERPRINT)
DOCA = OfedWant("doca-ofed", "3.2.0", "doca-ofed", repository=REPOSITORY)
MLNX = OfedWant("mlnx-ofed", "24.10-2.1.8.0", repository=REPOSITORY)
INBOX = OfedWant("inbox")
NCCL = NcclWant("vendor", "2.27.5", "12.9", repository=REPOSITORY)
CLOSURES = {
    "doca-ofed": {"doca-ofed": "3.2.0-125000", "rdma-core": "2510mlnx60-1", "mlnx-ofed-kernel-dkms": "25.10.OFED-1"},
    "mlnx-ofed": {"mlnx-ofed-all": "24.10-2.1.8.0", "rdma-core": "2410mlnx54-1"},
    "vendor": {"libnccl2": "2.27.5-1+cuda12.9", "libnccl-dev": "2.27.5-1+cuda12.9"},
    "inbox": {},
    "distribution": {},
}
STATE = KernelState(KERNEL, KERNEL, headers=True)


def closure_of(want, platform=UBUNTU):
    """What is pinned of a wish; dnf calls NCCL otherwise."""
    found = CLOSURES[want.stack if isinstance(want, OfedWant) else want.source]
    if platform.manager == "apt" or isinstance(want, OfedWant):
        return found
    return {name.replace("libnccl2", "libnccl").replace("-dev", "-devel"): v for name, v in found.items()}


def as_wanted(want, platform=UBUNTU, **changes):
    """A node on which nothing is left to do."""
    made, pinned = recipe(want, platform), closure_of(want, platform)
    texts = dict.fromkeys(files.paths(made.name, platform), "") | files.declared(made, platform)
    texts[files.pins_path(made.name, platform)] = files.pins(made, platform, pinned)
    held = platform.manager == "apt"
    packages = {root.name: Package("50.0-2") for root in made.roots} | {
        name: Package(version, held) for name, version in pinned.items()
    }
    seen = PackagesSeen(
        platform,
        {path: text.rstrip("\n") if text else ABSENT for path, text in texts.items()},
        Database(packages),
        free_bytes=1 << 40,
        kernel=STATE if made.name == "ofed" else None,
        built={name: True for name in pinned if name.endswith("-dkms")},
    )
    return replace(seen, **changes)


def fresh(want, platform=UBUNTU, **changes):
    """A node on which nothing of it was ever done."""
    made = recipe(want, platform)
    absent = dict.fromkeys(files.paths(made.name, platform), ABSENT)
    return as_wanted(want, platform, **{"files": absent, "database": Database(), "built": {}, **changes})


def snapshot(name, seen, devices=None):
    return Snapshot("boot-1", 0, devices or Devices(()), {name: seen})


def planned(seen, want, devices=None):
    return plan(seen, devices or Devices(), want)


def with_packages(want, platform=UBUNTU, **packages):
    good = as_wanted(want, platform)
    found = {**good.database.packages, **{name.replace("_", "-"): package for name, package in packages.items()}}
    return replace(good, database=replace(good.database, packages={n: p for n, p in found.items() if p is not None}))
