"""A wish and a platform → which packages of which version, which never, and whose others have to go. Pure."""

import re
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import List, Optional, Tuple, Union

from .platforms import (
    FIRMWARE_UPDATER,
    KERNEL_SUPPORT,
    NCCL_TESTS,
    PROFILES,
    ROOTS,
    VENDOR_NAMES,
    VENDOR_NCCL,
    VENDOR_VERSIONS,
    Platform,
)
from .seen import Package
from .want import NcclWant, OfedWant, RepositoryWant

ANY = ""
"""Of a version: whichever the distribution offers."""
GIB = 1 << 30
SHUNNED = ("doca-*", "mlnx-*")


@dataclass(frozen=True)
class Root:
    """A package that is asked for by name; the others come as what it depends on."""

    name: str
    version: str = ANY


@dataclass(frozen=True)
class Recipe:
    """What a wish comes to on a platform.

    Attributes:
        name: of the set of packages: ofed or nccl.
        forbidden: packages that must not be there.
        strangers: patterns of names of packages that belong to another stack.
        stranger_versions: patterns of versions, likewise.
        other_builds: patterns of versions that the roots may not have.
        shunned: patterns of names that no source but the repository may offer.
        modules: how kernel modules come with it: dkms, prebuilt, or "" without any.
        need_bytes: free space without which nothing is begun.
    """

    name: str
    roots: Tuple[Root, ...]
    repository: Optional[RepositoryWant] = None
    forbidden: Tuple[str, ...] = ()
    strangers: Tuple[str, ...] = ()
    stranger_versions: Tuple[str, ...] = ()
    other_builds: Tuple[str, ...] = ()
    shunned: Tuple[str, ...] = ()
    modules: str = ""
    need_bytes: int = GIB

    @property
    def burns(self) -> bool:
        """Whether the package that burns firmware belongs to it."""
        return any(root.name == FIRMWARE_UPDATER for root in self.roots)

    @property
    def pinned(self) -> bool:
        """Whether one version is wanted and no other: it is pinned and held, with all that comes with it."""
        return any(root.version != ANY for root in self.roots)

    def other_build(self, version: str) -> bool:
        """Whether a root of this version is another source's."""
        return any(fnmatchcase(version, pattern) for pattern in self.other_builds)

    def met(self, name: str, package: Package, version: str) -> bool:
        """Whether a package that is there is as wanted: whole, of that version, and no other source's."""
        if not package.whole or self.other_build(package.version):
            return False
        return fits(package.version, version) and (version != ANY or not self.strange(name, package.version))

    def strange(self, name: str, version: str) -> bool:
        """Whether a package belongs to another stack; those of this one are told apart by their pins."""
        return any(fnmatchcase(name, pattern) for pattern in self.strangers) or any(
            fnmatchcase(version, pattern) for pattern in self.stranger_versions
        )


def vendor_s(name: str, version: str) -> bool:
    """Whether a package is one of the vendor's stacks, by its name or by what its version says."""
    named = any(fnmatchcase(name, pattern) for pattern in VENDOR_NAMES)
    return named or any(fnmatchcase(version, pattern) for pattern in VENDOR_VERSIONS)


def fits(version: str, wanted: str) -> bool:
    """Whether a package's version is the wanted one. Without a dash it is so in any revision of the package."""
    if wanted in (ANY, version):
        return True
    return fnmatchcase(version, wanted if "*" in wanted or "-" in wanted else f"{wanted}-*")


def natural(version: str) -> List[Tuple[int, int, str]]:
    """A key that sorts 6.8.0-9 before 6.8.0-45."""
    return [(1, int(word), "") if word.isdigit() else (0, 0, word) for word in re.findall(r"\d+|[a-z]+", version)]


def ofed(want: OfedWant, platform: Platform) -> Recipe:
    """The RDMA stack of a platform."""
    forbidden = () if want.firmware_updater else (FIRMWARE_UPDATER,)
    names = ROOTS[platform.manager]
    if want.stack == "inbox":
        roots = tuple(Root(name) for name in names["inbox"])
        return Recipe(
            "ofed",
            roots,
            forbidden=forbidden,
            strangers=VENDOR_NAMES,
            stranger_versions=VENDOR_VERSIONS,
            shunned=SHUNNED,
            need_bytes=GIB // 4,
        )
    mains, strangers = _vendor(want, names["mlnx-ofed"])
    extra: Tuple[str, ...] = KERNEL_SUPPORT if want.kernel_support else ()
    extra += (FIRMWARE_UPDATER,) if want.firmware_updater else ()
    roots = (*(Root(name, want.version or ANY) for name in mains), *(Root(name) for name in extra))
    return Recipe(
        "ofed",
        roots,
        want.repository,
        forbidden=forbidden,
        strangers=strangers,
        shunned=SHUNNED,
        modules=want.modules,
        need_bytes=2 * GIB,
    )


def _vendor(want: OfedWant, mlnx_ofed: Tuple[str, ...]) -> Tuple[Tuple[str, ...], Tuple[str, ...]]:
    """The vendor's packages that are asked for, and those that belong to its other stack or to more than is wanted."""
    if want.stack == "mlnx-ofed":
        return mlnx_ofed, ("doca-*",)
    profile = want.profile or "doca-ofed"
    return (profile,), (*_mlnx_ofed(), *PROFILES[PROFILES.index(profile) + 1 :])


def _mlnx_ofed() -> Tuple[str, ...]:
    """MLNX_OFED's own packages; mlnx-ofed-kernel-* are DOCA's too, which names them in its closure."""
    kinds = (
        "all",
        "basic",
        "hpc",
        "dpdk",
        "guest",
        "hypervisor",
        "vma",
        "vma-*",
        "bluefield",
        "eth-only",
        "upstream-*",
    )
    return tuple(f"mlnx-ofed-{kind}" for kind in kinds)


def nccl(want: NcclWant, platform: Platform) -> Recipe:
    """NCCL on a platform: library and headers are one pair, of one version and one CUDA."""
    names = ROOTS[platform.manager]
    pair = names["nccl"] + (names["nccl-dev"] if want.dev else ())
    roots = [Root(name, nccl_version(want)) for name in pair]
    roots += [Root(name) for name in (NCCL_TESTS if want.tests else ())]
    others = VENDOR_NCCL if want.source == "distribution" else ()
    return Recipe("nccl", tuple(roots), want.repository, other_builds=others)


def nccl_version(want: NcclWant) -> str:
    """The version of the packages: 2.27.5 for CUDA 12.9 is 2.27.5-1+cuda12.9, or another revision of it."""
    if want.version is None or want.cuda is None:
        return want.version or ANY
    return f"{want.version}+cuda{want.cuda}" if "-" in want.version else f"{want.version}-*+cuda{want.cuda}"


Want = Union[OfedWant, NcclWant]


def recipe(want: Want, platform: Platform) -> Recipe:
    """What either wish comes to."""
    return ofed(want, platform) if isinstance(want, OfedWant) else nccl(want, platform)
