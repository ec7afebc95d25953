"""What a stand-in is made of, whichever format it is packed in."""

from dataclasses import dataclass, field

SAYS = "A stand-in for tests of gpufab: it holds nothing of what its name promises."
# Where maintainer scripts leave a mark of what they did, a file for each kind.
MARKS = "/var/lib/gpufab-standins"
# What some packages are called in the RHEL family.
_RPM_NAMES = {
    "ibverbs-utils": "libibverbs-utils",
    "iproute2": "iproute",
    "libibverbs1": "libibverbs",
    "libnccl-dev": "libnccl-devel",
    "libnccl2": "libnccl",
    "librdmacm1": "librdmacm",
    "mlnx-ofed-kernel-dkms": "mlnx-ofa_kernel-dkms",
    "mlnx-ofed-kernel-utils": "mlnx-ofa_kernel",
    "rdmacm-utils": "librdmacm-utils",
}


@dataclass(frozen=True)
class Package:
    """One package.

    Attributes:
        name: as Debian has it.
        version: upstream and revision, with a dash between them.
        depends: names; with `=` at the end, of exactly this version.
        recommends: names of what is brought along unless it is unwanted.
        after: shell lines that run after it was unpacked.
        gone: shell lines that run after it was removed, or replaced by another version.
        files: programs and other files by path; a program begins with `#!`.
        installed_kib: what it claims to need on disk (deb only).
    """

    name: str
    version: str
    depends: tuple[str, ...] = ()
    recommends: tuple[str, ...] = ()
    after: str = ""
    gone: str = ""
    files: dict[str, str] = field(default_factory=dict)
    installed_kib: int = 0

    @property
    def rpm_name(self) -> str:
        """Its name in the RHEL family."""
        return rpm_name(self.name)


def rpm_name(name: str) -> str:
    """What a package of that name in Debian is called in the RHEL family."""
    return _RPM_NAMES.get(name, name)


def mark(kind: str) -> str:
    """Shell lines that leave a mark."""
    return f"mkdir -p {MARKS}\ndate >>{MARKS}/{kind}\n"
