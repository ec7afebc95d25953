"""What the spec wants of the packages of one node: its RDMA stack, and NCCL."""

from dataclasses import dataclass
from typing import Annotated, Literal, Optional, Tuple

from ..schema import Doc, Pattern

# No credentials: an address with a password in it would lie in fabric.yml and on every node.
Url = Annotated[
    str, Pattern(r"(?:https?://[A-Za-z0-9.\-]+(?::\d{1,5})?|file://)/[A-Za-z0-9._~/{}%+:\-]{0,250}", "a URL")
]
Proxy = Annotated[str, Pattern(r"https?://[A-Za-z0-9.\-]+(?::\d{1,5})?/?", "a proxy such as http://proxy:3128")]
Version = Annotated[str, Pattern(r"[0-9][A-Za-z0-9.+~\-]{0,63}", "a version")]
Cuda = Annotated[str, Pattern(r"[0-9]{1,2}\.[0-9]{1,2}", "a CUDA version such as 12.9")]
Suite = Annotated[str, Pattern(r"[A-Za-z0-9._/\-]{1,80}", "a suite, or a path that ends in a slash")]
Component = Annotated[str, Pattern(r"[A-Za-z0-9._/\-]{1,80}", "a component")]
Fingerprint = Annotated[str, Pattern(r"[0-9A-F]{40}(?:[0-9A-F]{24})?", "a fingerprint of 40 or 64 hexadecimal digits")]
ArmouredKey = Annotated[
    str,
    Pattern(
        r"-----BEGIN PGP PUBLIC KEY BLOCK-----[A-Za-z0-9+/=\s:.,()<>@_\-]+-----END PGP PUBLIC KEY BLOCK-----\s*",
        "an ASCII-armoured public key",
    ),
]
Stack = Literal["doca-ofed", "mlnx-ofed", "inbox"]
Profile = Literal["doca-roce", "doca-ofed", "doca-networking", "doca-all"]
Modules = Literal["dkms", "prebuilt"]
Source = Literal["vendor", "distribution"]


@dataclass(frozen=True)
class RepositoryWant:
    """Where packages come from, and the key that it is signed with."""

    url: Annotated[Url, Doc("Where it is; {platform}, {release} and {arch} stand for the node's.")]
    key: Annotated[ArmouredKey, Doc("The public key that it is signed with, ASCII-armoured.")]
    fingerprint: Annotated[Fingerprint, Doc("The key's fingerprint.")]
    suite: Annotated[Suite, Doc("Suite of an APT repository; ./ for a flat one.")] = "./"
    components: Annotated[Tuple[Component, ...], Doc("Components of an APT repository; none of a flat one.")] = ()
    proxy: Annotated[Optional[Proxy], Doc("Proxy that it is reached through.")] = None


@dataclass(frozen=True)
class OfedWant:
    """The RDMA stack of one node."""

    stack: Annotated[Stack, Doc("doca-ofed, mlnx-ofed, or inbox, the distribution's own.")]
    version: Annotated[Optional[Version], Doc("Version of a vendor's stack.")] = None
    profile: Annotated[Optional[Profile], Doc("How much of doca-ofed.")] = None
    modules: Annotated[Modules, Doc("Whether a vendor's modules are built on the node or come built.")] = "dkms"
    kernel_support: Annotated[bool, Doc("Install doca-kernel-support too, for kernels without modules.")] = False
    firmware_updater: Annotated[bool, Doc("Let mlnx-fw-updater in, which burns firmware.")] = False
    repository: Annotated[Optional[RepositoryWant], Doc("Where it comes from; else the node's own sources.")] = None


@dataclass(frozen=True)
class NcclWant:
    """NCCL as installed on one node."""

    source: Annotated[Source, Doc("The vendor's NCCL, or the distribution's own.")] = "vendor"
    version: Annotated[Optional[Version], Doc("Version, such as 2.27.5.")] = None
    cuda: Annotated[Optional[Cuda], Doc("The CUDA version that it is built for.")] = None
    dev: Annotated[bool, Doc("Install the headers too, of the same version.")] = True
    tests: Annotated[bool, Doc("Install the package nccl-tests too.")] = False
    repository: Annotated[Optional[RepositoryWant], Doc("Where it comes from; else the node's own sources.")] = None
